using System.Buffers;
using System.IO.Pipelines;
using System.Runtime.ExceptionServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;
using Pipelines.File.Waiting;

namespace Pipelines.File;

/// <summary>
/// A <see cref="PipeReader"/> that sits directly on a file: one vectored system call fills several pooled segments, data that the system already holds arrives
/// synchronously, and only what has to wait is handed over.
/// </summary>
/// <remarks>
/// A drop-in for <c>PipeReader.Create(new FileStream(…))</c>. One caller uses it at a time; <see cref="CancelPendingRead"/> and <see cref="Complete"/> may come from
/// any thread. An I/O error is an <see cref="IOException"/> (or <see cref="UnauthorizedAccessException"/>) that names the path where it is known, and every
/// later read throws it again.
/// </remarks>
public sealed class FilePipeReader : PipeReader, IFileOperationOwner, ICountsOwner, IDisposable, IAsyncDisposable
{
    /// <summary>Bytes that one read asks for where the file has as many. Chosen by measurement: docs/tuning.md.</summary>
    internal const int BytesPerRead = 256 * 1024;

    /// <summary>Bytes that the first read asks for where nobody knows how many there are; it doubles for as long as reads fill what they ask for.</summary>
    private const int FirstUnknownRead = 4 * 1024;

    /// <summary>Bytes that one read of unknown size asks for at most because a caller wants so many.</summary>
    private const int MaxUnknownRead = 1024 * 1024;

    private readonly FileBackend _backend;
    private readonly FilePipeReaderOptions _options;
    private readonly bool _leaveOpen;

    // Guards every field below. Nothing is called under it that waits or that runs a caller's code, a caller's memory pool included.
    private readonly Lock _lock = new();

    // The lock guards it but for the memory of the read under way, see there.
    private readonly ReadChain _chain;

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

    // The first error of the file, thrown again by later reads.
    private Exception? _error;
    private EndOfFile _end;
    private int _unknownReadSize;

    // The caller has a buffer: a read has returned one that no AdvanceTo has followed.
    private bool _isOut;
    private bool _cancelRequested;
    private bool _isCompleted;
    private bool _isReleased;
    private bool _isPaused;

    private UnrecordedCounts _counts;

    // Whoever awaits CompleteAsync while a system call is under way.
    private TaskCompletionSource? _released;

    private FilePipeReader(FileBackend backend, FilePipeReaderOptions options, bool leaveOpen)
    {
        _backend = backend;
        _options = options;
        _leaveOpen = leaveOpen;

        // Where one call fills one segment only, it is that segment which is large.
        int segmentSize = backend.MaxBuffersPerOperation > 1 ? options.BufferSize : Math.Max(options.BufferSize, BytesPerRead);
        _chain = new ReadChain(options.Pool, segmentSize, backend.MaxBuffersPerOperation, BytesPerRead);
        _unknownReadSize = Math.Min(options.BufferSize, FirstUnknownRead);
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

    /// <summary>What is known of the end of the file, which is not for ever: a file may grow, and a FIFO get another writer.</summary>
    private enum EndOfFile
    {
        Unknown,

        /// <summary>The last read has found it, and no result has said so yet.</summary>
        Found,

        /// <summary>A result has said so. The next read asks the file again.</summary>
        Told,
    }

    /// <summary>The file offset, in bytes, of the first byte that is not consumed yet. A file that cannot seek counts from 0.</summary>
    public long Position
    {
        get
        {
            lock (_lock)
            {
                return _options.Offset + _chain.Start + (_copy?.Copied ?? 0);
            }
        }
    }

    /// <summary>The back end in use: the one that <see cref="FilePipeBackend.Auto"/> chose.</summary>
    public FilePipeBackend Backend => _backend.Kind;

    internal FileBackend FileBackend => _backend;

    private bool ReadsAhead => _options.PauseReadAheadThreshold > 0;

    /// <summary>Everything that <see cref="FilePipeReaderOptions.Length"/> allows has been read.</summary>
    private bool IsAtLimit => _chain.End == _options.Length;

    /// <summary>Opens a file for reading and puts a reader on it, which closes it when it is completed.</summary>
    /// <param name="path">The file: absolute, or relative to the current directory. FIFOs, devices and files of /proc work.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty.</exception>
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
    /// <exception cref="ArgumentException"><paramref name="handle"/> is invalid.</exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeReaderOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    public static FilePipeReader Create(SafeFileHandle handle, FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        return Create(FileBackends.Attach(options.Backend, handle), options, options.LeaveOpen);
    }

    internal static FilePipeReader Create(FileBackend backend, FilePipeReaderOptions options, bool leaveOpen, bool isOpenedByPath = false)
    {
        backend.RequireOffset(options.Offset, nameof(FilePipeReaderOptions), closeHandle: isOpenedByPath);
        return new FilePipeReader(backend, options, leaveOpen);
    }

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
            if (_cancelRequested || (_chain.Length > 0 && HasEnough(0)))
            {
                result = TakeResult();
                return true;
            }

            result = default;
            return false;
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
                freed = _chain.TakeOut();
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
                long consumedIndex = _chain.IndexOf(consumed);
                freed = _chain.AdvanceTo(consumedIndex, consumed.Equals(examined) ? consumedIndex : _chain.IndexOf(examined));
                readAhead = TryBeginReadAhead();
            }

            _isOut = false;
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
        FileCopy? copy;
        PooledCompletion<ReadResult>? pending;
        ReadResult result = default;
        Cancellation cancellation = default;
        lock (_lock)
        {
            copy = _copy;
            _cancelRequested = copy is null;
            pending = TakePending();
            if (pending is not null)
            {
                result = TakeResult();
                cancellation = CancellationOfRead();
            }
        }

        copy?.Cancel(new OperationCanceledException("The read was canceled."));
        pending?.CompleteNow(result, null);
        cancellation.Request(_backend);
    }

    /// <summary>
    /// Ends the reader and closes the file. A pending read ends at once with <see cref="InvalidOperationException"/>; its memory and the handle are released
    /// when the system is done with them, for which this does not wait. A buffer that the caller still has then stays as it is, and is given to nobody else until
    /// the caller's next <see cref="AdvanceTo(SequencePosition)"/>, which throws; without one it is left to the garbage collector.
    /// </summary>
    /// <param name="exception">Ignored: there is nobody on the other side to be told.</param>
    public override void Complete(Exception? exception = null)
    {
        FileCopy? copy;
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
            copy = _copy;
            pending = TakePending();
            cancellation = CancellationOfRead();
            counts = _counts.Take();

            // Else whoever has the operation, or copies, releases everything when that ends.
            release = _stage == Stage.Idle;
        }

        Exception? poolError = release ? Release() : null;
        counts.Record();
        copy?.Cancel(CompletedException());
        pending?.CompleteNow(default, CompletedException());
        cancellation.Request(_backend);
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
                _copy = copy = new FileCopy(_backend, _options.Offset + _chain.End, _options.Length - _chain.End);
                if (_cancelRequested)
                {
                    _cancelRequested = false;
                    copy.Cancel(new OperationCanceledException("The read was canceled."));
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

        return pending is null ? TryReadAsync(operation!, minimumSize, cancellationToken) : Wait(pending, cancellationToken);
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
        return pending is null ? Answer(result, error) : Wait(pending, cancellationToken);
    }

    /// <summary>
    /// Gives the read its memory. A caller's memory pool may throw here: then the read is not made, whoever waits for it gets the error, and it is returned.
    /// Called without the lock by whoever has the operation.
    /// </summary>
    private Exception? TryPrepare(FileOperation operation)
    {
        try
        {
            _chain.RentForRead(operation, _unrented);
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
                freed = _chain.EndRead(0);
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

    /// <summary>The pending read's task. The token may end it from here on.</summary>
    private ValueTask<ReadResult> Wait(PooledCompletion<ReadResult> pending, CancellationToken cancellationToken)
    {
        ValueTask<ReadResult> task = pending.Task;
        if (cancellationToken.CanBeCanceled)
        {
            CancellationTokenRegistration registration = cancellationToken.UnsafeRegister(static (state, token) => ((FilePipeReader)state!).OnTokenCanceled(token), this);
            lock (_lock)
            {
                if (_pending == pending)
                {
                    pending.Registration = registration;
                    return task;
                }
            }

            registration.Unregister();
        }

        return task;
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

        pending?.CompleteNow(default, new OperationCanceledException(token));
        cancellation.Request(_backend);
    }

    private async Task CopyAsync(FileCopy copy, PipeWriter destination, CancellationToken cancellationToken)
    {
        try
        {
            if (await CopyBufferedAsync(copy, destination, cancellationToken).ConfigureAwait(false))
            {
                await copy.CopyToAsync(destination, cancellationToken).ConfigureAwait(false);
            }
        }
        finally
        {
            FileSegment? freed = null;
            bool release;
            lock (_lock)
            {
                if (copy.Copied > 0)
                {
                    freed = _chain.Skip(copy.Copied);
                }

                _error ??= copy.Error;
                _end = EndOfFile.Unknown;
                _copy = null;
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
    }

    /// <summary>Writes the segments that earlier reads have left. <see langword="false"/>: the destination takes no more.</summary>
    private async ValueTask<bool> CopyBufferedAsync(FileCopy copy, PipeWriter destination, CancellationToken cancellationToken)
    {
        // While this copies nobody else moves the chain.
        foreach (ReadOnlyMemory<byte> memory in _chain.Sequence)
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
                    long consumed = _chain.Start + memory.Length;
                    freed = _chain.AdvanceTo(consumed, consumed);
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
        return _error is null ? true : throw _error;
    }

    /// <summary>Gives memory and handle back, by the one who found the reader completed and nothing under way. Returns what a caller's memory pool threw.</summary>
    private Exception? Release()
    {
        FileSegment? freed;
        FileOperation? operation;
        lock (_lock)
        {
            freed = _chain.Release(_isOut);
            operation = _operation;
            _operation = null;
        }

        operation?.Return();
        Exception? poolError = SegmentPool.Shared.Return(freed);
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
        operation.Begin(FileOperationKind.Read, _options.Offset + _chain.End);
        _unrented = _chain.BeginRead(operation, NextReadSize(minimumSize));
        _stage = next;
        return operation;
    }

    private FileOperation? TryBeginReadAhead()
    {
        if (!ReadsAhead || _stage != Stage.Idle || _end != EndOfFile.Unknown || IsAtLimit || _isCompleted || _error is not null)
        {
            return null;
        }

        if (_chain.Length >= _options.PauseReadAheadThreshold)
        {
            _isPaused = true;
        }
        else if (_chain.Length <= _options.EffectiveResumeThreshold)
        {
            _isPaused = false;
        }

        return _isPaused ? null : BeginRead(0, Stage.Started);
    }

    /// <summary>Records what came of a read.</summary>
    private FileSegment? EndRead(FileOperation operation)
    {
        long transferred = operation.Transferred;
        _stage = Stage.Idle;
        if (operation.Error is not null)
        {
            _error = operation.Error;
        }
        else if (transferred > 0)
        {
            _end = EndOfFile.Unknown;
            if (transferred == operation.Length && operation.Offset >= _backend.Properties.Length)
            {
                _unknownReadSize = Math.Min(_unknownReadSize * 2, BytesPerRead);
            }
        }
        else if (!operation.IsCanceled)
        {
            _end = EndOfFile.Found;
        }

        return _chain.EndRead(transferred);
    }

    /// <summary>Bytes to ask for: never none.</summary>
    private long NextReadSize(int minimumSize)
    {
        long missing = Math.Max(0, minimumSize - _chain.Length);
        long known = _backend.Properties.Length - (_options.Offset + _chain.End);
        long size = known > 0
            ? Math.Min(Math.Max(Math.Max(BytesPerRead, _options.BufferSize), missing), known)
            : Math.Max(_unknownReadSize, Math.Min(missing, MaxUnknownRead));
        return Math.Min(size, _options.Length - _chain.End ?? long.MaxValue);
    }

    /// <summary>Whether a read for that many bytes is over, with a result or an error.</summary>
    private bool TryAnswer(int minimumSize, out ReadResult result, out Exception? error)
    {
        result = default;
        error = null;
        if (_isCompleted)
        {
            error = CompletedException();
        }
        else if (_cancelRequested || HasEnough(minimumSize))
        {
            result = TakeResult();
        }
        else if (_error is not null)
        {
            error = _error;
        }
        else
        {
            return false;
        }

        return true;
    }

    private bool HasEnough(int minimumSize) => (_chain.HasUnexamined && _chain.Length >= minimumSize) || IsAtLimit || _end == EndOfFile.Found;

    private ReadResult TakeResult()
    {
        ReadResult result = new(_chain.Sequence, _cancelRequested, IsAtLimit || _end == EndOfFile.Found);
        _cancelRequested = false;
        _isOut |= _chain.Length > 0;
        if (_end == EndOfFile.Found)
        {
            _end = EndOfFile.Told;
        }

        return result;
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

    private static ValueTask<ReadResult> Answer(ReadResult result, Exception? error)
        => error is null ? new ValueTask<ReadResult>(result) : ValueTask.FromException<ReadResult>(error);

    private static InvalidOperationException CompletedException() => new("Reading is not allowed after the reader was completed.");

    private static InvalidOperationException PendingException() => new("Another read is pending: a reader serves one at a time.");
}
