using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Reading;
using Pipelines.File.Threading;

namespace Pipelines.File;

/// <summary>
/// A <see cref="PipeReader"/> that reads a file directly, without a <see cref="FileStream"/>. A read that the page cache can answer
/// completes synchronously; a read that has to wait for the device is made on another thread.
/// </summary>
/// <remarks>
/// <para>It behaves like <c>PipeReader.Create(new FileStream(…))</c>. One caller uses it at a time. Any thread may call
/// <see cref="CancelPendingRead"/> and <see cref="Complete"/>.</para>
/// <para>If reading fails, the read throws an <see cref="IOException"/> or <see cref="UnauthorizedAccessException"/> that names the path if
/// it is known, and every later read throws it again.</para>
/// </remarks>
public sealed partial class FilePipeReader : PipeReader, IDisposable, IAsyncDisposable
{
    private static readonly Action<object?, CancellationToken> s_onTokenCanceled =
        static (state, token) => ((FilePipeReader)state!).OnTokenCanceled(token);

    // The reader's lock, which also guards the fields below. Under it no code waits and no caller's code runs, a caller's memory pool
    // included.
    private readonly ReadBuffer _buffer;
    private readonly bool _leaveOpen;

    // The request of the reader's own reads; null before the first one. Its owner is the thread of the call while _stage is Trying, the
    // loop of WaitingReads while it is Waiting, and whoever holds the lock while it is Idle.
    private FileRequest? _request;
    private Stage _stage;
    private bool _isCompleted;
    private bool _isReleased;

    // Reads the file for a copy; null unless _stage is Pumping.
    private FilePump? _pump;

    // Null until a read has to wait, a read-ahead begins, or CompleteAsync has to wait for the release.
    private WaitingReads? _waiting;

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

        /// <summary>The loop of WaitingReads owns the request.</summary>
        Waiting,

        /// <summary>A FilePump reads the file for CopyToAsync, with requests of its own.</summary>
        Pumping,
    }

    /// <summary>
    /// The file offset, in bytes, of the first byte that is not consumed yet. In a file that cannot seek it counts from 0.
    /// </summary>
    /// <remarks>
    /// A loop over <c>ReadLinesAsync</c> or <c>ReadLineBatchesAsync</c> advances it once for each read, not for each line.
    /// </remarks>
    public long Position
    {
        get
        {
            lock (_buffer)
            {
                return _buffer.Position;
            }
        }
    }

    /// <summary>
    /// The length of the whole file, in bytes, at the moment when it was opened; for example to show a percentage.
    /// <see cref="FilePipeReaderOptions.Offset"/> and <see cref="FilePipeReaderOptions.Length"/> do not change it. It is
    /// <see langword="null"/> if the length is unknown until everything is read: pipes, devices, files of /proc.
    /// </summary>
    public long? Length => OpenedFile.Properties.KnownLength;

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

    /// <summary>Created on first use. Used under the lock only.</summary>
    private WaitingReads Waiting
    {
        get
        {
            if (_waiting is null)
            {
                Probe.Allocating();
                _waiting = new WaitingReads(this, _buffer);
            }

            return _waiting;
        }
    }

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
        WaitingReads? begun = null;
        bool isCompleted;
        lock (_buffer)
        {
            isCompleted = _isCompleted;
            if (isCompleted)
            {
                // This call ends the caller's use of its last buffer, so the segments can be reused.
                freed = _buffer.EndCallersUseLocked();
            }
            else if (_stage == Stage.Pumping)
            {
                throw PendingException();
            }
            else if (consumed.GetObject() is null || examined.GetObject() is null)
            {
                // Positions of an empty buffer: there is nothing to advance over.
                return;
            }
            else
            {
                freed = _buffer.AdvanceToLocked(consumed, examined);
                begun = TryBeginReadAheadLocked();
            }
        }

        Exception? poolError = SegmentPool.Shared.Return(freed);
        begun?.Wake();
        if (isCompleted)
        {
            throw CompletedException();
        }

        if (poolError is not null)
        {
            ExceptionDispatchInfo.Throw(poolError);
        }
    }

    private ValueTask<ReadResult> ReadCoreAsync(int minimumSize, CancellationToken cancellationToken)
    {
        PendingResult<ReadResult>? wait = null;
        lock (_buffer)
        {
            ThrowIfNotReadableLocked();
            if (cancellationToken.IsCancellationRequested)
            {
                return ValueTask.FromCanceled<ReadResult>(cancellationToken);
            }

            if (TryAnswerLocked(minimumSize, out ReadResult result, out Exception? error))
            {
                return _buffer.Answer(result, error);
            }

            if (_stage == Stage.Waiting)
            {
                // A read is running already: a read-ahead, or one whose wait was canceled.
                wait = Waiting.AddLocked(minimumSize, cancellationToken);
            }
            else
            {
                BeginReadLocked(minimumSize, Stage.Trying);
            }
        }

        return wait is null ? TryReadAsync(minimumSize, cancellationToken) : wait.EndWith(s_onTokenCanceled, this, cancellationToken);
    }

    /// <summary>Performs reads on the caller's thread until the result is complete or a read has to wait.</summary>
    private ValueTask<ReadResult> TryReadAsync(int minimumSize, CancellationToken cancellationToken)
    {
        while (true)
        {
            if (TryRent() is { } poolError)
            {
                return ValueTask.FromException<ReadResult>(poolError);
            }

            if (OpenedFile.Try(_request!) != Attempt.Done)
            {
                return StartReadAsync(minimumSize, cancellationToken);
            }

            _buffer.ReturnUnfilled(_request!);
            FilePipeMetrics.ReadsInline.Add();
            WaitingReads? begun = null;
            bool releases;
            bool isAnswered;
            bool isCanceled;
            ReadResult result;
            Exception? error;
            lock (_buffer)
            {
                releases = EndReadLocked();
                isAnswered = TryAnswerLocked(minimumSize, out result, out error);
                isCanceled = !isAnswered && cancellationToken.IsCancellationRequested;
                if (isAnswered)
                {
                    begun = TryBeginReadAheadLocked();
                }
                else if (!isCanceled)
                {
                    BeginReadLocked(minimumSize, Stage.Trying);
                }
            }

            ReleaseIf(releases);
            begun?.Wake();
            if (isAnswered || isCanceled)
            {
                return isAnswered ? _buffer.Answer(result, error) : ValueTask.FromCanceled<ReadResult>(cancellationToken);
            }
        }
    }

    /// <summary>
    /// Hands a read that has to wait to <see cref="WaitingReads"/>. After Complete, too: the system may have its memory already, and the
    /// end of the read releases everything. If a cancellation or Complete came meanwhile, this call returns at once, and nobody waits for
    /// the read. Where memory is out, nobody does either.
    /// </summary>
    private ValueTask<ReadResult> StartReadAsync(int minimumSize, CancellationToken cancellationToken)
    {
        PendingResult<ReadResult>? wait = null;
        Cancellation cancellation;
        WaitingReads? waiting = null;
        ReadResult result = default;
        Exception? error;
        lock (_buffer)
        {
            try
            {
                // First, because it allocates: a stage without a loop would never end.
                waiting = Waiting;
                _stage = Stage.Waiting;
                if (!TryAnswerLocked(minimumSize, out result, out error))
                {
                    wait = waiting.AddLocked(minimumSize, cancellationToken);
                }
            }
            catch (OutOfMemoryException e)
            {
                error = e;
            }

            cancellation = wait is null ? CancellationOfReadLocked() : default;
        }

        if (waiting is null)
        {
            _request!.FinishCanceled();
            _ = EndWaitingRead(error);
            return ValueTask.FromException<ReadResult>(error!);
        }

        waiting.Wake();
        cancellation.Request(OpenedFile);
        return wait is null ? _buffer.Answer(result, error) : wait.EndWith(s_onTokenCanceled, this, cancellationToken);
    }

    /// <summary>
    /// Runs the read that is set up. Returns <see langword="false"/> if a caller's memory pool has thrown, which has ended the read. Called
    /// by the loop of <see cref="WaitingReads"/>.
    /// </summary>
    internal bool TryRunRead(out ValueTask run)
    {
        bool isRented = TryRent() is null;
        run = isRented ? OpenedFile.RunAsync(_request!) : default;
        return isRented;
    }

    /// <summary>
    /// Records the result of that read, and completes the pending ReadAsync unless it needs another read. Called by the loop of
    /// <see cref="WaitingReads"/>, without the lock. Returns <see langword="true"/> if the next read is set up.
    /// </summary>
    /// <param name="poolError">What a caller's memory pool has thrown, or that memory is out, so that the read was not performed.</param>
    internal bool EndWaitingRead(Exception? poolError = null)
    {
        PendingResult<ReadResult>? wait;
        ReadResult result = default;
        Exception? error = null;
        bool releases;
        bool goesOn;
        _buffer.ReturnUnfilled(_request!);
        lock (_buffer)
        {
            releases = EndReadLocked();
            goesOn = poolError is null && Waiting.HasWait && !TryAnswerLocked(Waiting.MinimumSize, out result, out error);
            wait = goesOn ? null : _waiting?.TakeLocked();
            if (goesOn)
            {
                BeginReadLocked(Waiting.MinimumSize, Stage.Waiting);
            }
            else
            {
                goesOn = poolError is null && TryBeginReadAheadLocked() is not null;
            }
        }

        ReleaseIf(releases);
        wait?.CompleteOnPool(result, poolError ?? error);
        return goesOn;
    }

    /// <summary>
    /// Rents and pins the memory of the read. Called without the lock by the owner of the request. If a caller's memory pool throws, the
    /// read is not performed, the pending ReadAsync fails with that error, and the error is returned.
    /// </summary>
    private Exception? TryRent()
    {
        try
        {
            _buffer.Rent(_request!);
            return null;
        }
        catch (Exception e)
        {
            _request!.FinishCanceled();
            _ = EndWaitingRead(e);
            return e;
        }
    }

    /// <summary>Sets a read up. <see cref="TryRent"/> adds the memory that it still lacks.</summary>
    private void BeginReadLocked(int minimumSize, Stage next)
    {
        if (_request is null)
        {
            if (Backend == FilePipeBackend.Overlapped)
            {
                // Now, because it allocates: when such a read is known to wait, the system has it already.
                _ = Waiting;
            }

            _request = OpenedFile.Rent();
            _request.ResumesOnPool = _buffer.HasCallersPool;
        }

        _buffer.BeginReadLocked(_request, minimumSize);
        _stage = next;
    }

    /// <summary>Sets a read-ahead up if one is wanted. Returns the loop that is to be woken for it, or <see langword="null"/>.</summary>
    private WaitingReads? TryBeginReadAheadLocked()
    {
        if (!_buffer.ReadsAhead || _stage != Stage.Idle || _isCompleted || !_buffer.WantsReadAheadLocked())
        {
            return null;
        }

        try
        {
            WaitingReads waiting = Waiting;
            BeginReadLocked(0, Stage.Waiting);
            return waiting;
        }
        catch (OutOfMemoryException)
        {
            // Nothing is read ahead this time.
            return null;
        }
    }

    /// <summary>Records the result of a read. Returns whether memory and handle are to be released.</summary>
    private bool EndReadLocked()
    {
        _stage = Stage.Idle;
        _buffer.EndReadLocked(_request!);
        return _isCompleted;
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

        if (_waiting is { HasWait: true } || _stage is Stage.Trying or Stage.Pumping)
        {
            throw PendingException();
        }
    }

    private static OperationCanceledException CanceledException() => new("The read was canceled.");

    private static InvalidOperationException CompletedException() => new("Reading is not allowed after the reader was completed.");

    private static InvalidOperationException CompletedMeanwhileException() => new("The reader was completed while this read was pending.");

    private static InvalidOperationException PendingException() => new("Another read is pending: a reader serves one at a time.");
}
