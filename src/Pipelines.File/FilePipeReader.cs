using Pipelines.File.Diagnostics;
using Pipelines.File.Growing;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Reading;
using Pipelines.File.Threading;

namespace Pipelines.File;

/// <summary>
/// A <see cref="PipeReader"/> that reads a file directly, without a <see cref="FileStream"/>. A read that the page cache can satisfy
/// completes synchronously; a read that has to wait for the device is made on another thread.
/// </summary>
/// <remarks>
/// <para>It behaves like <c>PipeReader.Create(new FileStream(…))</c>. One caller uses it at a time. Any thread may call
/// <see cref="CancelPendingRead"/> and <see cref="Complete"/>.</para>
/// <para>If reading fails, the read throws an <see cref="IOException"/> or <see cref="UnauthorizedAccessException"/> that names the path if
/// it is known, and every later read throws it again.</para>
/// </remarks>
public sealed partial class FilePipeReader : PipeReader, IDisposable, IAsyncDisposable, IRequestOwner
{
    private static readonly Action<object?, CancellationToken> s_onTokenCanceled =
        static (state, token) => ((FilePipeReader)state!).OnTokenCanceled(token);

    // The reader's lock, which also guards the fields below. Under it no code waits and no caller's code runs, a caller's memory pool
    // included.
    private readonly ReadBuffer _buffer;
    private readonly bool _leaveOpen;

    // The request of the reader's own reads; null before the first one. Its owner is the thread of the call while _stage is Trying, the
    // one that runs it while it is Waiting, and whoever holds the lock while it is Idle.
    private FileRequest? _request;
    private Stage _stage;
    private bool _isCompleted;
    private bool _isReleased;

    // The ReadAsync that waits, and the minimum size that the pending one has asked for, bytes.
    private PendingResult<ReadResult>? _wait;
    private Stack<PendingResult<ReadResult>>? _freeWaits;
    private int _minimumSize;

    // Interlocked: how many of two have come, the end of a run and the return from its beginning. The second one goes on.
    private int _met;

    // Completed when memory and handle are released; null if nobody awaits that.
    private TaskCompletionSource? _release;

    private FilePipeReader(ReadBuffer buffer, bool leaveOpen)
    {
        _buffer = buffer;
        _leaveOpen = leaveOpen;
    }

    private enum Stage : byte
    {
        /// <summary>No system call is under way.</summary>
        Idle,

        /// <summary>The thread that called ReadAsync performs the request, which does not wait.</summary>
        Trying,

        /// <summary>The request runs, or is about to (<see cref="RunReads"/>).</summary>
        Waiting,
    }

    /// <summary>
    /// The file offset, in bytes, of the first byte that is not consumed yet. In a file that cannot seek it counts from 0.
    /// </summary>
    /// <remarks>
    /// A loop over <c>ReadLineSequencesAsync</c> or <c>ReadLineBatchesAsync</c> advances it once for each read, not for each line.
    /// </remarks>
    public long Position => _buffer.Position;

    /// <summary>
    /// The length of the whole file, in bytes, at the moment when it was opened; for example to show a percentage.
    /// <see cref="FilePipeReaderOptions.Offset"/> and <see cref="FilePipeReaderOptions.Length"/> do not change it. It is
    /// <see langword="null"/> if the length is unknown until everything is read: pipes, devices, files of /proc.
    /// </summary>
    public long? Length => OpenedFile.Properties.KnownLength;

    /// <summary>Whether it reads a part of the file only, as <see cref="FilePipeReaderOptions.Length"/> says.</summary>
    internal bool IsPart => _buffer.Left is not null;

    /// <summary>Whether a read waits for the device only, and not for somebody who writes.</summary>
    internal bool IsWhole => Length is not null && OpenedFile is not FollowedFile;

    /// <summary>The back end that reads the file. It shows what <see cref="FilePipeBackend.Auto"/> has chosen.</summary>
    public FilePipeBackend Backend => OpenedFile.Kind;

    /// <summary>
    /// The identity of the file, which stays the same when the file is renamed. Together with <see cref="Position"/> it is a checkpoint: a
    /// program that is started again can find the file and continue there. It is <see langword="default"/> on systems other than Linux and
    /// Windows.
    /// </summary>
    /// <exception cref="ObjectDisposedException">On Windows: the file is closed, and was not followed.</exception>
    public FileIdentity Identity => OpenedFile.Identity;

    internal OpenedFile OpenedFile => _buffer.File;

    /// <summary>
    /// Reads more of the file. The result holds all bytes that are not consumed, with at least one byte that was not examined before, or
    /// has <see cref="ReadResult.IsCompleted"/> set at the end of the file. Call
    /// <see cref="AdvanceTo(SequencePosition, SequencePosition)"/> to say which bytes you have used.
    /// </summary>
    /// <param name="cancellationToken">Ends the wait at once. Bytes that the system is still reading come with a later read.</param>
    /// <exception cref="InvalidOperationException">Another read is pending, or the reader is completed. Nothing has changed.</exception>
    /// <exception cref="IOException">Reading has failed, in this read or an earlier one.</exception>
    /// <exception cref="UnauthorizedAccessException">The system has denied access, in this read or an earlier one.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled. The reader can still be used.</exception>
    /// <inheritdoc/>
    public override ValueTask<ReadResult> ReadAsync(CancellationToken cancellationToken = default) => ReadCoreAsync(0, cancellationToken);

    /// <inheritdoc/>
    protected override ValueTask<ReadResult> ReadAtLeastAsyncCore(int minimumSize, CancellationToken cancellationToken)
        => ReadCoreAsync(minimumSize, cancellationToken);

    /// <summary>Returns the bytes that are buffered and not examined yet. It makes no system call.</summary>
    /// <inheritdoc/>
    public override bool TryRead(out ReadResult result)
    {
        lock (_buffer)
        {
            ThrowIfNotReadableLocked();
            return _buffer.TryAnswerFromBufferLocked(out result);
        }
    }

    /// <inheritdoc/>
    public override void AdvanceTo(SequencePosition consumed) => AdvanceTo(consumed, consumed);

    /// <inheritdoc/>
    /// <exception cref="InvalidOperationException">
    /// A position does not belong to the buffer of the last read, or the reader is completed. Nothing has changed.
    /// </exception>
    public override void AdvanceTo(SequencePosition consumed, SequencePosition examined)
    {
        FileSegment? freed;
        bool readsAhead;
        lock (_buffer)
        {
            if (_isCompleted)
            {
                throw CompletedException();
            }

            if (consumed.GetObject() is null || examined.GetObject() is null)
            {
                // Positions of an empty buffer: there is nothing to advance over.
                return;
            }

            freed = _buffer.AdvanceToLocked(consumed, examined);
            readsAhead = TryBeginReadAheadLocked();
        }

        Exception? poolError = SegmentPool.Shared.Return(freed);
        RunReadsIf(readsAhead);
        if (poolError is not null)
        {
            ExceptionDispatchInfo.Throw(poolError);
        }
    }

    /// <summary>
    /// Copies the rest of the file to <paramref name="destination"/>, with a flush after every step of up to 256 KiB.
    /// </summary>
    /// <remarks>
    /// The copy ends at the end of the file, or when the destination's reader has gone (<see cref="FlushResult.IsCompleted"/>). It
    /// completes neither side. If it is canceled or fails, the bytes that the destination has are consumed, so another copy continues after
    /// them.
    /// </remarks>
    /// <inheritdoc/>
    public override Task CopyToAsync(PipeWriter destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        Unexamine();
        return cancellationToken.IsCancellationRequested ? Task.FromCanceled(cancellationToken)
            : PipeCopy.CopyAsync(this, destination, cancellationToken);
    }

    /// <summary>Copies the rest of the file to <paramref name="destination"/>, what is buffered at once.</summary>
    /// <inheritdoc/>
    public override Task CopyToAsync(Stream destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        Unexamine();
        return base.CopyToAsync(destination, cancellationToken);
    }

    /// <summary>Makes a copy begin with what is buffered, also if the caller has examined it.</summary>
    private void Unexamine()
    {
        lock (_buffer)
        {
            ThrowIfNotReadableLocked();
            _buffer.UnexamineLocked();
        }
    }

    /// <summary>Takes the pending ReadAsync out. Whoever gets it completes it afterwards, without the lock.</summary>
    private PendingResult<ReadResult>? TakeWaitLocked()
    {
        PendingResult<ReadResult>? wait = _wait;
        _wait = null;
        return wait;
    }

    private bool TryAnswerLocked(int minimumSize, out ReadResult result, out Exception? error)
    {
        if (!_isCompleted)
        {
            return _buffer.TryAnswerLocked(minimumSize, out result, out error);
        }

        result = default;
        error = CompletedMeanwhileException();
        return true;
    }

    private void ThrowIfNotReadableLocked()
    {
        _buffer.AssertLocked();
        if (_isCompleted)
        {
            throw CompletedException();
        }

        if (_wait is not null || _stage == Stage.Trying)
        {
            throw new InvalidOperationException("Another read is pending: a reader serves one at a time.");
        }
    }

    private static InvalidOperationException CompletedException() => new("Reading is not allowed after the reader was completed.");

    private static InvalidOperationException CompletedMeanwhileException() => new("The reader was completed while this read was pending.");
}
