using System.Buffers;
using System.IO.Pipelines;
using System.Runtime.ExceptionServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;
using Pipelines.File.Waiting;

namespace Pipelines.File;

/// <summary>
/// A <see cref="PipeReader"/> that reads a file without a <see cref="FileStream"/>: one system call fills several pieces of pooled memory, and what the system has in its
/// cache is there when <see cref="ReadAsync"/> returns; only a read that has to wait for the device is made on another thread.
/// </summary>
/// <remarks>
/// It behaves as <c>PipeReader.Create(new FileStream(…))</c> does. One caller uses it at a time; <see cref="CancelPendingRead"/> and <see cref="Complete"/> may come from
/// any thread. An I/O error is an <see cref="IOException"/> (or <see cref="UnauthorizedAccessException"/>) that names the path where it is known, and every
/// later read throws it again.
/// </remarks>
public sealed class FilePipeReader : PipeReader, IFileOperationOwner, ICountsOwner, IDisposable, IAsyncDisposable
{
    private static readonly Action<object?, CancellationToken> s_onTokenCanceled = static (state, token) => ((FilePipeReader)state!).OnTokenCanceled(token);

    private readonly FileBackend _backend;
    private readonly FilePipeReaderOptions _options;
    private readonly bool _leaveOpen;

    // Guards every field below. Nothing is called under it that waits or that runs a caller's code, a caller's memory pool included.
    private readonly Lock _lock = new();

    private readonly ReadState _state;

    // The read under way. It belongs to the caller's thread while _stage is Trying, to the back end while it is Started, and to whoever holds the lock while it is Idle.
    private FileOperation? _operation;
    private Stage _stage;

    // Bytes of the read under way that have no memory yet, which is rented without the lock; owned as the operation is.
    private long _unrented;

    // While _stage is Copying.
    private FileCopy? _copy;

    // The pending ReadAsync. Whoever sets it to null, under the lock, is the one who completes it.
    private PooledCompletion<ReadResult>? _pending;
    private PooledCompletions<ReadResult>? _completions;
    private int _pendingMinimum;

    // The task of every read that throws the first error of the file: each time as it was, without the traces of the earlier reads.
    private Task<ReadResult>? _failedRead;
    private bool _isCompleted;
    private bool _isReleased;

    private UnrecordedCounts _counts;

    // Whoever awaits CompleteAsync while a system call is under way.
    private TaskCompletionSource? _released;

    private FilePipeReader(FileBackend backend, FilePipeReaderOptions options, long offset, bool leaveOpen)
    {
        _backend = backend;
        _options = options;
        _leaveOpen = leaveOpen;
        _state = new ReadState(options, offset, backend);
    }

    private enum Stage
    {
        /// <summary>No system call is under way.</summary>
        Idle,

        /// <summary>The caller's thread is in a call that does not wait.</summary>
        Trying,

        /// <summary>The back end has the operation.</summary>
        Started,

        /// <summary>CopyToAsync has the file, with an operation of its own.</summary>
        Copying,
    }

    /// <summary>
    /// The file offset, in bytes, of the first byte that is not consumed yet. A file that cannot seek counts from 0. In a loop over ReadLinesAsync it is behind the lines of earlier reads:
    /// it moves with each read, and not with each line.
    /// </summary>
    public long Position
    {
        get
        {
            lock (_lock)
            {
                return _state.Position + (_copy?.Copied ?? 0);
            }
        }
    }

    /// <summary>
    /// The length of the file, bytes, when it was opened, for percentages: of the whole file, whatever <see cref="FilePipeReaderOptions.Offset"/> and
    /// <see cref="FilePipeReaderOptions.Length"/> say. <see langword="null"/> where nobody knows it before everything is read: pipes, devices, files of /proc.
    /// </summary>
    public long? Length => _backend.Properties.KnownLength;

    /// <summary>How the system is asked for bytes: what <see cref="FilePipeBackend.Auto"/> has chosen.</summary>
    public FilePipeBackend Backend => _backend.Kind;

    /// <summary>
    /// Which file this is, whatever its name. With <see cref="Position"/> a checkpoint: what is needed to go on after a restart, and to find the file again where it was renamed
    /// meanwhile. <see langword="default"/> where the system does not tell: other than on Linux and Windows.
    /// </summary>
    /// <exception cref="ObjectDisposedException">The file is closed, and opening did not tell: on Windows, unless it was followed.</exception>
    public FileIdentity Identity => _backend.Identity;

    internal FileBackend FileBackend => _backend;

    private bool ReadsAhead => _options.PauseReadAheadThreshold > 0;

    /// <summary>Opens a file for reading and puts a reader on it, which closes it when it is completed.</summary>
    /// <param name="path">The file: absolute, or relative to the current directory. FIFOs, devices and files of /proc work.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty, or <see langword="null"/>.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder on the way to it.</exception>
    /// <exception cref="UnauthorizedAccessException">The caller may not read it, or it is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeReaderOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="IOException">Opening it failed otherwise, for example because another process has it open exclusively.</exception>
    public static FilePipeReader Create(string path, FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        FileBackend backend = FileBackends.Open(options.Backend, path, FileMode.Open, FileAccess.Read, options.Share, options.FileOptions, preallocationSize: 0);
        return Create(backend, options, leaveOpen: false, isOpenedByPath: true);
    }

    /// <summary>
    /// As <see cref="Create(string, FilePipeReaderOptions?)"/>, without holding up the caller: the file is opened by a thread of the library's own. A FIFO waits for its other side without
    /// a thread.
    /// </summary>
    /// <param name="path">The file: absolute, or relative to the current directory of this moment.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <param name="cancellationToken">Ends the wait at once; a file that is opened all the same is closed again.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <inheritdoc cref="Create(string, FilePipeReaderOptions?)" path="/exception"/>
    public static ValueTask<FilePipeReader> OpenAsync(string path, FilePipeReaderOptions? options = null, CancellationToken cancellationToken = default)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileBackends.ThrowIfNotSupported(options.Backend);
        string fullPath = Path.GetFullPath(path);
        FifoOpening? fifo = FifoOpening.IsSupported(options.Backend, options.Share, options.FileOptions) ? new FifoOpening(fullPath, FileAccess.Read, options.Share) : null;
        return PendingOpen<FilePipeReader>.StartAsync(
            fullPath,
            fifo,
            handle => handle is null ? Create(fullPath, options) : Create(FileBackends.OpenFifo(options.Backend, handle, fullPath), options, leaveOpen: false, isOpenedByPath: true),
            static opened => opened.Complete(),
            cancellationToken);
    }

    /// <summary>
    /// Puts a reader on an open file, which it closes when it is completed unless <see cref="FilePipeReaderOptions.LeaveOpen"/> says otherwise. Where this throws,
    /// the file stays open.
    /// </summary>
    /// <param name="handle">The file, open for reading. A file that can seek is read from <see cref="FilePipeReaderOptions.Offset"/>, wherever its own position is.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="handle"/> is invalid, or an option is set that is for paths.</exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeReaderOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    public static FilePipeReader Create(SafeFileHandle handle, FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        options.ValidateForHandle();
        return Create(FileBackends.Attach(options.Backend, handle), options, options.LeaveOpen);
    }

    /// <summary>
    /// Puts a reader on the standard input of this process, which may be a file, a pipe, a terminal or a socket. It reads from where the shell, or whoever read before, has left off,
    /// and leaves a file at the first byte that was not consumed, so that <c>(read header; program; cat) &lt; file</c> reads every line once; it never closes it.
    /// </summary>
    /// <remarks>Not the same as <c>FilePipeReader.Create("/dev/stdin")</c>, which opens the file behind it anew, from its beginning, and fails for a socket.</remarks>
    /// <param name="options">How to read; <see langword="null"/> for the defaults. What is for a path, and <see cref="FilePipeReaderOptions.Offset"/>, cannot be set.</param>
    /// <exception cref="ArgumentException">An option is set that the shell has decided.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="IOException">There is no standard input.</exception>
    public static FilePipeReader OpenStandardInput(FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        options.ValidateForHandle();
        return options.Offset != 0
            ? throw new ArgumentException("Where standard input is read from is for whoever started this process: Offset cannot be set.", nameof(options))
            : Create(FileBackends.OpenStandard(options.Backend, isOutput: false), options, leaveOpen: true);
    }

    internal static FilePipeReader Create(FileBackend backend, FilePipeReaderOptions options, bool leaveOpen, bool isOpenedByPath = false)
    {
        backend.RequireOffset(options.Offset, nameof(FilePipeReaderOptions), closeHandle: isOpenedByPath);
        if (options.Follow)
        {
            backend = FollowingBackend.Of(backend, isOpenedByPath ? backend.GivenPath : null, options.FollowInterval);
        }

        return new FilePipeReader(backend, options, backend.SharesPosition ? backend.GetPosition() : options.Offset, leaveOpen);
    }

    /// <summary>
    /// Gives what is buffered and not consumed, with at least one byte that was not examined before, or <see cref="ReadResult.IsCompleted"/> at the end of the file. What the system has in
    /// its cache is there when this returns; a read that waits for the device, or for the other side of a pipe, completes later. <see cref="AdvanceTo(SequencePosition, SequencePosition)"/>
    /// says what of it was used.
    /// </summary>
    /// <param name="cancellationToken">Ends the wait at once, and not the reading: what the system still reads comes with a later read.</param>
    /// <exception cref="InvalidOperationException">Another read is pending, or the reader is completed. Nothing has changed.</exception>
    /// <exception cref="IOException">Reading has failed, now or earlier.</exception>
    /// <exception cref="UnauthorizedAccessException">The same, where the system denies access.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled. The reader can be used on.</exception>
    /// <inheritdoc/>
    public override ValueTask<ReadResult> ReadAsync(CancellationToken cancellationToken = default) => ReadCoreAsync(0, cancellationToken);

    /// <inheritdoc/>
    protected override ValueTask<ReadResult> ReadAtLeastAsyncCore(int minimumSize, CancellationToken cancellationToken)
        => ReadCoreAsync(minimumSize, cancellationToken);

    /// <summary>Gives what is buffered and not examined yet. It makes no system call of its own.</summary>
    /// <inheritdoc/>
    public override bool TryRead(out ReadResult result)
    {
        lock (_lock)
        {
            ThrowIfNotReadable();
            return _state.TryAnswerFromBuffer(out result);
        }
    }

    /// <inheritdoc/>
    public override void AdvanceTo(SequencePosition consumed) => AdvanceTo(consumed, consumed);

    /// <inheritdoc/>
    /// <exception cref="InvalidOperationException">A position is not one of the buffer that the last read returned, or the reader is completed. Nothing has changed.</exception>
    public override void AdvanceTo(SequencePosition consumed, SequencePosition examined)
    {
        FileSegment? freed;
        FileOperation? readAhead = null;
        bool isCompleted;
        lock (_lock)
        {
            isCompleted = _isCompleted;
            if (isCompleted)
            {
                // The buffer that the caller still had is nobody's from here on.
                freed = _state.TakeOut();
            }
            else if (_stage == Stage.Copying)
            {
                throw PendingException();
            }
            else if (consumed.GetObject() is null || examined.GetObject() is null)
            {
                // The positions of an empty buffer.
                return;
            }
            else
            {
                freed = _state.AdvanceTo(consumed, examined);
                readAhead = TryBeginReadAhead();
            }
        }

        Exception? poolError = SegmentPool.Shared.Return(freed);
        if (readAhead is not null && TryPrepare(readAhead) is null)
        {
            _backend.Start(readAhead);
        }

        if (isCompleted)
        {
            throw CompletedException();
        }

        if (poolError is not null)
        {
            ExceptionDispatchInfo.Throw(poolError);
        }
    }

    /// <summary>
    /// Makes the pending, or else the next, read return at once with <see cref="ReadResult.IsCanceled"/>, also while the system call underneath goes on.
    /// Nothing that the call reads is lost: a later read returns it. A pending copy ends with <see cref="OperationCanceledException"/>.
    /// </summary>
    public override void CancelPendingRead()
    {
        PooledCompletion<ReadResult>? pending;
        ReadResult result = default;
        Cancellation cancellation = default;
        lock (_lock)
        {
            _state.IsCancelRequested = _copy is null;
            pending = TakePending();
            if (_copy is not null)
            {
                cancellation = _copy.Cancel(new OperationCanceledException("The read was canceled."));
            }
            else if (pending is not null)
            {
                result = _state.TakeResult();
                cancellation = CancellationOfRead();
            }
        }

        cancellation.Request(_backend);
        pending?.CompleteNow(result, null);
    }

    /// <summary>
    /// Ends the reader and closes the file. A pending read ends at once with <see cref="InvalidOperationException"/>; its memory and the handle are released
    /// when the system is done with them, for which this does not wait. A buffer that the caller still has then stays as it is, and is given to nobody else until
    /// the caller's next <see cref="AdvanceTo(SequencePosition)"/>, which throws; without one it is left to the garbage collector.
    /// </summary>
    /// <param name="exception">Ignored: there is nobody on the other side to be told.</param>
    public override void Complete(Exception? exception = null)
    {
        PooledCompletion<ReadResult>? pending;
        Cancellation cancellation;
        UnrecordedCounts counts;
        bool release;
        lock (_lock)
        {
            if (_isCompleted)
            {
                return;
            }

            _isCompleted = true;
            pending = TakePending();
            cancellation = _copy?.Cancel(CompletedException()) ?? CancellationOfRead();
            counts = _counts.Take();

            // Else whoever has the operation, or copies, releases everything when that ends.
            release = _stage == Stage.Idle;
        }

        Exception? poolError = release ? Release() : null;
        counts.Record();
        cancellation.Request(_backend);
        pending?.CompleteNow(default, CompletedException());
        if (poolError is not null)
        {
            ExceptionDispatchInfo.Throw(poolError);
        }
    }

    /// <summary>
    /// As <see cref="Complete"/>, and completes when memory and handle are released: when the system call that is under way, if any, has ended. Only one that can neither
    /// be given up nor ends by itself (<see cref="FilePipeBackend.Portable"/>, a pipe) is not waited for.
    /// </summary>
    /// <param name="exception">Ignored: there is nobody on the other side to be told.</param>
    public override ValueTask CompleteAsync(Exception? exception = null)
    {
        Complete(exception);
        lock (_lock)
        {
            return _isReleased || !_backend.EndsOperations
                ? default
                : new ValueTask((_released ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task);
        }
    }

    /// <inheritdoc cref="Complete"/>
    public void Dispose() => Complete();

    /// <inheritdoc cref="CompleteAsync"/>
    public ValueTask DisposeAsync() => CompleteAsync();

    /// <summary>
    /// Copies what is buffered and the rest of the file to <paramref name="destination"/>, read straight into its own memory, with a flush after every read.
    /// Ends at the end of the file, or when the destination's reader is gone (<see cref="FlushResult.IsCompleted"/>); completes neither side.
    /// </summary>
    /// <inheritdoc/>
    public override Task CopyToAsync(PipeWriter destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        FileCopy? copy = null;
        lock (_lock)
        {
            ThrowIfNotReadable();
            if (cancellationToken.IsCancellationRequested)
            {
                return Task.FromCanceled(cancellationToken);
            }

            // Not where a read is under way into the reader's own memory, or will be, and not where one into the destination's memory could not be given up.
            if (!ReadsAhead && _stage == Stage.Idle && _backend.EndsOperations)
            {
                _stage = Stage.Copying;
                _copy = copy = new FileCopy(_backend, _state.NextOffset, _state.Left);
                if (_state.IsCancelRequested)
                {
                    _state.IsCancelRequested = false;
                    _ = copy.Cancel(new OperationCanceledException("The read was canceled."));
                }
            }
        }

        return copy is null ? base.CopyToAsync(destination, cancellationToken) : CopyAsync(copy, destination, cancellationToken);
    }

    bool IFileOperationOwner.RunsCallersCode => _options.Pool is not null;

    void ICountsOwner.RecordCounts()
    {
        UnrecordedCounts counts;
        lock (_lock)
        {
            counts = _counts.Take();
        }

        counts.Record();
    }

    bool IFileOperationOwner.OnCompleted(FileOperation operation)
    {
        PooledCompletion<ReadResult>? pending = null;
        ReadResult result = default;
        Exception? error = null;
        FileSegment? freed;
        FileOperation? next = null;
        bool release = false;
        operation.Clear();
        lock (_lock)
        {
            _counts.Add(operation);
            freed = EndRead(operation);
            if (_isCompleted)
            {
                release = true;
            }
            else if (_pending is not null && !TryAnswer(_pendingMinimum, out result, out error))
            {
                next = BeginRead(_pendingMinimum, Stage.Started);
            }
            else
            {
                pending = TakePending();
                next = TryBeginReadAhead();
            }
        }

        // What a caller's pool throws here concerns nobody who waits: the bytes are there.
        _ = SegmentPool.Shared.Return(freed);
        if (release)
        {
            Release();
        }

        bool again = next is not null && TryPrepare(next) is null;
        pending?.CompleteOnPool(result, error);
        return again;
    }

    private ValueTask<ReadResult> ReadCoreAsync(int minimumSize, CancellationToken cancellationToken)
    {
        PooledCompletion<ReadResult>? pending = null;
        FileOperation? operation = null;
        if (ReadsAhead)
        {
            // What was read ahead ended without anybody who waited for it.
            ((ICountsOwner)this).RecordCounts();
        }

        lock (_lock)
        {
            ThrowIfNotReadable();
            if (cancellationToken.IsCancellationRequested)
            {
                return ValueTask.FromCanceled<ReadResult>(cancellationToken);
            }

            if (TryAnswer(minimumSize, out ReadResult result, out Exception? error))
            {
                return Answer(result, error);
            }

            if (_stage == Stage.Started)
            {
                // A read-ahead, or what a canceled read has left behind.
                pending = AddPending(minimumSize, cancellationToken);
            }
            else
            {
                operation = BeginRead(minimumSize, Stage.Trying);
            }
        }

        return pending is null ? TryReadAsync(operation!, minimumSize, cancellationToken) : pending.EndWith(s_onTokenCanceled, this, cancellationToken);
    }

    /// <summary>Performs reads on the caller's thread for as long as they need no waiting, and until they are enough.</summary>
    private ValueTask<ReadResult> TryReadAsync(FileOperation operation, int minimumSize, CancellationToken cancellationToken)
    {
        while (true)
        {
            if (TryPrepare(operation) is { } poolError)
            {
                return ValueTask.FromException<ReadResult>(poolError);
            }

            if (!_backend.TryPerform(operation))
            {
                return StartReadAsync(operation, minimumSize, cancellationToken);
            }

            operation.Clear();
            FilePipeMetrics.ReadInline();
            FilePipeMetrics.Read(operation.Transferred);
            FileSegment? freed;
            FileOperation? readAhead = null;
            ReadResult result;
            Exception? error;
            bool isAnswered;
            bool release = false;
            bool isCanceled = false;
            lock (_lock)
            {
                freed = EndRead(operation);
                isAnswered = TryAnswer(minimumSize, out result, out error);
                if (_isCompleted)
                {
                    release = true;
                }
                else if (isAnswered)
                {
                    readAhead = TryBeginReadAhead();
                }
                else if (cancellationToken.IsCancellationRequested)
                {
                    isCanceled = true;
                }
                else
                {
                    BeginRead(minimumSize, Stage.Trying);
                }
            }

            _ = SegmentPool.Shared.Return(freed);
            if (release)
            {
                Release();
            }

            if (readAhead is not null && TryPrepare(readAhead) is null)
            {
                _backend.Start(readAhead);
            }

            if (isAnswered)
            {
                return Answer(result, error);
            }

            if (isCanceled)
            {
                return ValueTask.FromCanceled<ReadResult>(cancellationToken);
            }
        }
    }

    /// <summary>
    /// Hands over a read that has to wait. Also after Complete: the system may have the memory already, and the report of its end releases everything. A cancellation that
    /// came while the caller's thread was in a call found no wait to end, and ends this one before it begins.
    /// </summary>
    private ValueTask<ReadResult> StartReadAsync(FileOperation operation, int minimumSize, CancellationToken cancellationToken)
    {
        PooledCompletion<ReadResult>? pending = null;
        Cancellation cancellation = default;
        ReadResult result;
        Exception? error;
        lock (_lock)
        {
            _stage = Stage.Started;
            if (TryAnswer(minimumSize, out result, out error))
            {
                cancellation = CancellationOfRead();
            }
            else
            {
                pending = AddPending(minimumSize, cancellationToken);
            }
        }

        _backend.Start(operation);
        cancellation.Request(_backend);
        return pending is null ? Answer(result, error) : pending.EndWith(s_onTokenCanceled, this, cancellationToken);
    }

    /// <summary>
    /// Gives the read its memory. A caller's memory pool may throw here: then the read is not made, whoever waits for it gets the error, and it is returned.
    /// Called without the lock by whoever has the operation.
    /// </summary>
    private Exception? TryPrepare(FileOperation operation)
    {
        try
        {
            _state.Chain.RentForRead(operation, _unrented);
            operation.Pin();
            return null;
        }
        catch (Exception e)
        {
            PooledCompletion<ReadResult>? pending;
            FileSegment? freed;
            bool release;
            operation.Clear();
            lock (_lock)
            {
                freed = _state.Chain.EndRead(0);
                _stage = Stage.Idle;
                pending = TakePending();
                release = _isCompleted;
            }

            _ = SegmentPool.Shared.Return(freed);
            if (release)
            {
                Release();
            }

            pending?.CompleteOnPool(default, e);
            return e;
        }
    }

    private void OnTokenCanceled(CancellationToken token)
    {
        PooledCompletion<ReadResult>? pending = null;
        Cancellation cancellation = default;
        lock (_lock)
        {
            // A callback that comes late may meet a later wait: with the same token that one ends as well, with another it does not.
            if (_pending?.CancellationToken == token)
            {
                pending = TakePending();
                cancellation = CancellationOfRead();
            }
        }

        cancellation.Request(_backend);
        pending?.CompleteNow(default, new OperationCanceledException(token));
    }

    private async Task CopyAsync(FileCopy copy, PipeWriter destination, CancellationToken cancellationToken)
    {
        Exception? canceled;
        try
        {
            if (await CopyBufferedAsync(copy, destination, cancellationToken).ConfigureAwait(false))
            {
                await copy.CopyToAsync(destination, cancellationToken).ConfigureAwait(false);
            }
        }
        finally
        {
            FileSegment? freed;
            bool release;
            lock (_lock)
            {
                freed = _state.EndCopy(copy);
                _copy = null;
                canceled = copy.Canceled;
                _stage = Stage.Idle;
                release = _isCompleted;
            }

            copy.Dispose();
            _ = SegmentPool.Shared.Return(freed);
            if (release)
            {
                Release();
            }
        }

        // A cancellation that came during the last call found nothing that it could end, and would be lost.
        if (canceled is not null)
        {
            ExceptionDispatchInfo.Throw(canceled);
        }
    }

    /// <summary>Writes the segments that earlier reads have left. <see langword="false"/>: the destination takes no more.</summary>
    private async ValueTask<bool> CopyBufferedAsync(FileCopy copy, PipeWriter destination, CancellationToken cancellationToken)
    {
        // While this copies nobody else moves the chain.
        foreach (ReadOnlyMemory<byte> memory in _state.Chain.Sequence)
        {
            copy.ThrowIfCanceled(cancellationToken);
            FlushResult flush = default;
            try
            {
                flush = await destination.WriteAsync(memory, cancellationToken).ConfigureAwait(false);
            }
            finally
            {
                // Also where the write fails: the destination may have taken them, and each byte goes there once.
                FileSegment? freed;
                lock (_lock)
                {
                    long consumed = _state.Chain.Start + memory.Length;
                    freed = _state.Chain.AdvanceTo(consumed, consumed);
                }

                _ = SegmentPool.Shared.Return(freed);
            }

            if (!FileCopy.GoesOn(flush))
            {
                return false;
            }
        }

        // An error comes after what was read before it, and is not tried again.
        copy.ThrowIfCanceled(cancellationToken);
        if (_state.Error is not null)
        {
            _ = await Answer(default, _state.Error).ConfigureAwait(false);
        }

        return true;
    }

    /// <summary>Gives memory and handle back, by the one who found the reader completed and nothing under way. Returns what a caller's memory pool threw.</summary>
    private Exception? Release()
    {
        FileSegment? freed;
        FileOperation? operation;
        lock (_lock)
        {
            freed = _state.Release();
            operation = _operation;
            _operation = null;
        }

        operation?.Return();
        Exception? poolError = SegmentPool.Shared.Return(freed);
        if (_backend.SharesPosition)
        {
            _backend.SetPosition(Position);
        }

        _backend.Release(closeHandle: !_leaveOpen);
        TaskCompletionSource? released;
        bool isCounting;
        lock (_lock)
        {
            _isReleased = true;
            released = _released;
            isCounting = _counts.Any;
        }

        // On the pool, as an awaiter's SynchronizationContext, or a listener of the meter, may be called.
        if (released is not null || isCounting)
        {
            ThreadPool.UnsafeQueueUserWorkItem(
                static reader =>
                {
                    ((ICountsOwner)reader).RecordCounts();
                    reader._released?.TrySetResult();
                },
                this,
                preferLocal: false);
        }

        return poolError;
    }

    // What follows is called under the lock.

    /// <summary>Sets a read up. Its memory is given to it by <see cref="TryPrepare"/>.</summary>
    private FileOperation BeginRead(int minimumSize, Stage next)
    {
        FileOperation operation = _operation ??= _backend.Rent(this);
        _unrented = _state.BeginRead(operation, minimumSize);
        _stage = next;
        return operation;
    }

    private FileOperation? TryBeginReadAhead()
        => ReadsAhead && _stage == Stage.Idle && !_isCompleted && _state.WantsReadAhead() ? BeginRead(0, Stage.Started) : null;

    private FileSegment? EndRead(FileOperation operation)
    {
        _stage = Stage.Idle;
        return _state.EndRead(operation);
    }

    private bool TryAnswer(int minimumSize, out ReadResult result, out Exception? error)
    {
        if (!_isCompleted)
        {
            return _state.TryAnswer(minimumSize, out result, out error);
        }

        result = default;
        error = CompletedException();
        return true;
    }

    private PooledCompletion<ReadResult> AddPending(int minimumSize, CancellationToken cancellationToken)
    {
        PooledCompletion<ReadResult> pending = (_completions ??= new PooledCompletions<ReadResult>(this)).Rent();
        pending.CancellationToken = cancellationToken;
        _pending = pending;
        _pendingMinimum = minimumSize;
        return pending;
    }

    private PooledCompletion<ReadResult>? TakePending()
    {
        PooledCompletion<ReadResult>? pending = _pending;
        _pending = null;
        return pending;
    }

    /// <summary>A read that nobody waits for any more is given up, unless it reads ahead.</summary>
    private Cancellation CancellationOfRead() => _stage == Stage.Started && (_isCompleted || !ReadsAhead) ? new Cancellation(_operation!) : default;

    private void ThrowIfNotReadable()
    {
        ThrowIfCompleted();
        if (_pending is not null || _stage is Stage.Trying or Stage.Copying)
        {
            throw PendingException();
        }
    }

    private void ThrowIfCompleted()
    {
        if (_isCompleted)
        {
            throw CompletedException();
        }
    }

    private ValueTask<ReadResult> Answer(ReadResult result, Exception? error)
        => error is null ? new ValueTask<ReadResult>(result)
            : error == _state.Error ? new ValueTask<ReadResult>(_failedRead ??= Task.FromException<ReadResult>(error))
            : ValueTask.FromException<ReadResult>(error);

    private static InvalidOperationException CompletedException() => new("Reading is not allowed after the reader was completed.");

    private static InvalidOperationException PendingException() => new("Another read is pending: a reader serves one at a time.");
}
