using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;
using Pipelines.File.Waiting;

namespace Pipelines.File;

/// <summary>
/// A <see cref="PipeWriter"/> that sits directly on a file: a flush hands its bytes to a drain that writes them behind the caller's back, in order, few large
/// vectored writes for many small flushes, with thresholds that bound what waits.
/// </summary>
/// <remarks>
/// <para>As <c>PipeWriter.Create(new FileStream(…))</c>, plus write-behind. One caller uses it at a time; <see cref="CancelPendingFlush"/>, <see cref="Complete"/> and
/// <see cref="Abort"/> may come from any thread, and several flushes may be pending.</para>
/// <para>The first write that fails is thrown, with the path, by the pending and every later flush and by <see cref="CompleteAsync"/>; nothing after the failed byte is
/// written, so the file holds an unbroken prefix. A flush that is canceled ends the wait only: its bytes are written exactly once.</para>
/// </remarks>
public sealed class FilePipeWriter : PipeWriter, IFileOperationOwner, ICountsOwner, IDisposable, IAsyncDisposable
{
    /// <summary>Bytes that one write takes at most. Chosen by measurement: docs/tuning.md.</summary>
    internal const int BytesPerWrite = 512 * 1024;

    /// <summary>Bytes that one WriteAsync takes in before it looks at the thresholds.</summary>
    private const int MaxUnpacedWrite = 1024 * 1024;

    private readonly FileBackend _backend;
    private readonly FilePipeWriterOptions _options;
    private readonly long _offset;
    private readonly bool _leaveOpen;
    private readonly bool _isOpenedByPath;

    // Guards every field below. Nothing is called under it that waits or that runs a caller's code, a caller's memory pool included.
    private readonly object _lock = new();

    // The lock guards of it what WriteQueue says.
    private readonly WriteQueue _queue;
    private readonly PendingFlushes _flushes;

    // The drain: the back end's while _isDraining, else whoever's holds the lock.
    private FileOperation? _operation;
    private bool _isDraining;

    // The first error, thrown again by every later flush and by CompleteAsync.
    private Exception? _error;
    private long _synced;
    private long _syncing;
    private int _flushesInQueue;
    private int _coalesced;
    private bool _cancelRequested;
    private bool _isCompleted;
    private bool _isAborted;
    private bool _isReleased;
    private UnrecordedCounts _counts;

    // Whoever awaits CompleteAsync while the drain runs.
    private TaskCompletionSource? _released;

    private FilePipeWriter(FileBackend backend, FilePipeWriterOptions options, long offset, bool leaveOpen, bool isOpenedByPath)
    {
        _backend = backend;
        _options = options;
        _offset = offset;
        _leaveOpen = leaveOpen;
        _isOpenedByPath = isOpenedByPath;
        _flushes = new PendingFlushes(this);

        // Where one call writes one segment only, small segments would make small writes.
        int maxSegments = backend.MaxBuffersPerOperation;
        int segmentSize = maxSegments > 1 ? options.MinimumBufferSize : Math.Max(options.MinimumBufferSize, FilePipeWriterOptions.DefaultMinimumBufferSize);
        _queue = new WriteQueue(options.Pool, segmentSize, maxSegments);
    }

    /// <summary>
    /// The file offset, in bytes, after everything that was flushed so far; after a failure or <see cref="Abort"/>, after everything that was written. A file that cannot
    /// seek counts from 0.
    /// </summary>
    public long Position
    {
        get
        {
            lock (_lock)
            {
                return _offset + (_error is null && !_isAborted ? _queue.Flushed : _queue.Written);
            }
        }
    }

    /// <summary>The back end in use: the one that <see cref="FilePipeBackend.Auto"/> chose.</summary>
    public FilePipeBackend Backend => _backend.Kind;

    /// <inheritdoc/>
    public override bool CanGetUnflushedBytes => true;

    /// <summary>Bytes that were advanced over and not yet handed over by a flush; 0 after the writer is completed.</summary>
    public override long UnflushedBytes => Volatile.Read(ref _isCompleted) ? 0 : _queue.Advanced - _queue.Flushed;

    internal FileBackend FileBackend => _backend;

    /// <summary>Opens or makes a file and puts a writer on it, which closes it when it is completed.</summary>
    /// <param name="path">The file: absolute, or relative to the current directory. FIFOs and devices work.</param>
    /// <param name="options">How to write; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty, or <see cref="FilePipeWriterOptions.PreallocationSize"/> goes with a mode that makes no file.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="FileNotFoundException">There is no such file, and the mode makes none.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder on the way to it.</exception>
    /// <exception cref="UnauthorizedAccessException">The caller may not write it, or it is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeWriterOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="IOException">Opening it failed otherwise: it exists already, another process has it open, the disk has no room to preallocate.</exception>
    public static FilePipeWriter Create(string path, FilePipeWriterOptions? options = null)
    {
        options ??= FilePipeWriterOptions.Default;
        options.Validate();
        FileBackend backend = FileBackends.Open(options.Backend, path, options.Mode, FileAccess.Write, options.Share, options.FileOptions, options.PreallocationSize);
        return Create(backend, options, leaveOpen: false, isOpenedByPath: true);
    }

    /// <summary>
    /// As <see cref="Create(string, FilePipeWriterOptions?)"/>, without holding up the caller: the file is opened by a thread of the library's own. A FIFO waits for its other side without
    /// a thread.
    /// </summary>
    /// <param name="path">The file: absolute, or relative to the current directory of this moment.</param>
    /// <param name="options">How to write; <see langword="null"/> for the defaults.</param>
    /// <param name="cancellationToken">Ends the wait at once; a file that is opened all the same is closed again.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <inheritdoc cref="Create(string, FilePipeWriterOptions?)" path="/exception"/>
    public static ValueTask<FilePipeWriter> OpenAsync(string path, FilePipeWriterOptions? options = null, CancellationToken cancellationToken = default)
    {
        options ??= FilePipeWriterOptions.Default;
        options.Validate();
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileBackends.ThrowIfNotSupported(options.Backend);
        string fullPath = Path.GetFullPath(path);
        FifoOpening? fifo = options.Mode != FileMode.CreateNew && options.PreallocationSize == 0 && FifoOpening.IsSupported(options.Backend, options.Share, options.FileOptions) ? new FifoOpening(fullPath, FileAccess.Write, options.Share) : null;
        return PendingOpen<FilePipeWriter>.StartAsync(
            fullPath,
            fifo,
            handle => handle is null ? Create(fullPath, options) : Create(FileBackends.OpenFifo(options.Backend, handle, fullPath), options, leaveOpen: false, isOpenedByPath: true),
            static opened => opened.Abort(),
            cancellationToken);
    }

    /// <summary>
    /// Puts a writer on an open file, which it closes when it is completed unless <see cref="FilePipeWriterOptions.LeaveOpen"/> says otherwise. Where this throws,
    /// the file stays open.
    /// </summary>
    /// <param name="handle">The file, open for writing. A file that can seek is written from <see cref="FilePipeWriterOptions.Offset"/>, wherever its own position is.</param>
    /// <param name="options">How to write; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="handle"/> is invalid.</exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeWriterOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    public static FilePipeWriter Create(SafeFileHandle handle, FilePipeWriterOptions? options = null)
    {
        options ??= FilePipeWriterOptions.Default;
        options.Validate();
        return Create(FileBackends.Attach(options.Backend, handle), options, options.LeaveOpen, isOpenedByPath: false);
    }

    internal static FilePipeWriter Create(FileBackend backend, FilePipeWriterOptions options, bool leaveOpen, bool isOpenedByPath)
    {
        backend.RequireOffset(options.Offset ?? 0, nameof(FilePipeWriterOptions), closeHandle: isOpenedByPath);
        long end = isOpenedByPath && options.Mode == FileMode.Append ? backend.Properties.Length : 0;
        return new FilePipeWriter(backend, options, options.Offset ?? end, leaveOpen, isOpenedByPath);
    }

    /// <inheritdoc/>
    public override Memory<byte> GetMemory(int sizeHint = 0)
        => _queue.TryGetRoom(sizeHint, out Memory<byte> room) && !Volatile.Read(ref _isCompleted) ? room : MakeRoom(sizeHint);

    /// <inheritdoc/>
    public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

    /// <inheritdoc/>
    public override void Advance(int bytes) => _queue.Advance(bytes);

    /// <summary>
    /// Hands everything over that was advanced over, and completes when <see cref="FilePipeWriterOptions.FlushGuarantee"/> holds: by default at once while less than
    /// <see cref="FilePipeWriterOptions.PauseWriterThreshold"/> bytes wait to be written.
    /// </summary>
    /// <param name="cancellationToken">Ends the wait, not the writing.</param>
    /// <exception cref="InvalidOperationException">The writer is completed.</exception>
    /// <exception cref="IOException">A write has failed, now or earlier.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled, or <see cref="Abort"/> came.</exception>
    public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default) => FlushAsExactlyAsync(_options.FlushGuarantee, cancellationToken);

    /// <summary>As <see cref="FlushAsync(CancellationToken)"/>, with at least this guarantee for everything so far, whatever the option says.</summary>
    /// <param name="guarantee">What holds when the flush completes.</param>
    /// <param name="cancellationToken">Ends the wait, not the writing.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="guarantee"/> is none.</exception>
    /// <inheritdoc cref="FlushAsync(CancellationToken)"/>
    public ValueTask<FlushResult> FlushAsync(FlushGuarantee guarantee, CancellationToken cancellationToken = default)
    {
        if (guarantee is < FlushGuarantee.WriteBehind or > FlushGuarantee.Durable)
        {
            throw new ArgumentOutOfRangeException(nameof(guarantee), guarantee, "Not a FlushGuarantee.");
        }

        return FlushAsExactlyAsync(guarantee > _options.FlushGuarantee ? guarantee : _options.FlushGuarantee, cancellationToken);
    }

    /// <summary>
    /// Copies <paramref name="source"/> and flushes. Canceled or not, its bytes are in the writer from here on, and are written exactly once.
    /// </summary>
    /// <inheritdoc cref="FlushAsync(CancellationToken)"/>
    /// <param name="source">The bytes.</param>
    /// <param name="cancellationToken">Ends the wait, not the writing.</param>
    public override ValueTask<FlushResult> WriteAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken = default)
    {
        if (source.Length > MaxUnpacedWrite)
        {
            return WritePacedAsync(source, cancellationToken);
        }

        Copy(source.Span);
        return FlushAsync(cancellationToken);
    }

    /// <summary>Makes the pending flushes, or else the next one, return at once with <see cref="FlushResult.IsCanceled"/>. What they flushed is written all the same.</summary>
    public override void CancelPendingFlush()
    {
        PooledCompletion<FlushResult>? canceled;
        lock (_lock)
        {
            canceled = _flushes.TakeAll();
            _cancelRequested = canceled is null;
        }

        PendingFlushes.Complete(canceled, new FlushResult(isCanceled: true, isCompleted: false), null, now: true);
    }

    /// <summary>
    /// Writes out everything, closes the file, and throws if any byte could not be written. Blocks until then: prefer <see cref="CompleteAsync"/>.
    /// </summary>
    /// <param name="exception">Anything but <see langword="null"/> drops what was not flushed; what was flushed is written all the same. <see cref="Abort"/> drops that, too.</param>
    /// <exception cref="IOException">A write has failed, now or earlier. The file is closed.</exception>
    /// <exception cref="OperationCanceledException"><see cref="Abort"/> came meanwhile.</exception>
    public override void Complete(Exception? exception = null)
    {
        bool wasAborted = BeginComplete(exception, mayWait: true);
        lock (_lock)
        {
            while (!_isReleased && !(_isAborted && !_backend.EndsOperations))
            {
                Monitor.Wait(_lock);
            }
        }

        RecordCounts();
        ThrowIfNotWhole(wasAborted);
    }

    /// <summary>Writes out everything, closes the file, and throws if any byte could not be written.</summary>
    /// <inheritdoc cref="Complete"/>
    public override async ValueTask CompleteAsync(Exception? exception = null)
    {
        bool wasAborted = BeginComplete(exception, mayWait: false);
        Task? released = null;
        lock (_lock)
        {
            if (!_isReleased && !(_isAborted && !_backend.EndsOperations))
            {
                released = (_released ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task;
            }
        }

        if (released is not null)
        {
            await released.ConfigureAwait(false);
        }

        RecordCounts();
        ThrowIfNotWhole(wasAborted);
    }

    /// <summary>
    /// Gives up at once: pending flushes, and whoever waits for the writer's completion, get an <see cref="OperationCanceledException"/>, what is not written is dropped,
    /// and the file is closed when the system is done with it. <see cref="CompleteAsync"/> afterwards only waits for that. May come from any thread, and does not throw.
    /// </summary>
    public void Abort()
    {
        PooledCompletion<FlushResult>? flushes;
        Cancellation cancellation = default;
        bool release;
        lock (_lock)
        {
            if (_isReleased || _isAborted)
            {
                return;
            }

            release = !_isDraining && !_isCompleted;
            Volatile.Write(ref _isCompleted, true);
            _isAborted = true;
            flushes = _flushes.TakeAll();
            if (_isDraining)
            {
                cancellation = new Cancellation(_operation!);
            }

            if (!_backend.EndsOperations)
            {
                // What is under way may never end: whoever waits for it goes on.
                Monitor.PulseAll(_lock);
                _released?.TrySetResult();
            }
        }

        PendingFlushes.Complete(flushes, default, flushes is null ? null : AbortedException(), now: true);
        cancellation.Request(_backend);
        if (release)
        {
            Release();
        }
    }

    /// <inheritdoc cref="Complete"/>
    public void Dispose()
    {
        if (!Volatile.Read(ref _isCompleted))
        {
            Complete();
        }
    }

    /// <inheritdoc cref="CompleteAsync"/>
    public ValueTask DisposeAsync() => Volatile.Read(ref _isCompleted) ? default : CompleteAsync();

    bool IFileOperationOwner.RunsCallersCode => _options.Pool is not null;

    bool IFileOperationOwner.OnCompleted(FileOperation operation) => OnCompleted(operation);

    void ICountsOwner.RecordCounts() => RecordCounts();

    /// <summary>Flushes with this guarantee, whatever the option says: for a copy, which asks for the writer's own once, in the end.</summary>
    internal ValueTask<FlushResult> FlushAsExactlyAsync(FlushGuarantee guarantee, CancellationToken cancellationToken)
    {
        PooledCompletion<FlushResult>? pending = null;
        FileOperation? drain = null;
        FileSegment? freed = null;
        Exception? error;
        bool isCanceled = false;
        UnrecordedCounts counts;
        lock (_lock)
        {
            ThrowIfCompleted();
            counts = _counts.Take();
            HandOver();
            error = _error;
            if (error is not null)
            {
                // Nothing after the failed byte is written.
                freed = _queue.DropFlushed();
            }
            else
            {
                isCanceled = _cancelRequested;
                _cancelRequested = false;
                if (!isCanceled && !cancellationToken.IsCancellationRequested && !IsReached(guarantee, out long target))
                {
                    pending = _flushes.Add(target, waitsForSync: guarantee == FlushGuarantee.Durable, cancellationToken);
                }

                drain = TryBeginDrain();
            }
        }

        _ = SegmentPool.Shared.Return(freed);
        if (drain is not null)
        {
            Drain(drain, mayWait: false);
        }

        counts.Record();
        if (pending is not null)
        {
            if (guarantee == FlushGuarantee.WriteBehind)
            {
                FilePipeMetrics.FlushPaused();
            }

            return Wait(pending, cancellationToken);
        }

        return error is not null ? ValueTask.FromException<FlushResult>(error)
            : isCanceled ? new ValueTask<FlushResult>(new FlushResult(isCanceled: true, isCompleted: false))
            : cancellationToken.IsCancellationRequested ? ValueTask.FromCanceled<FlushResult>(cancellationToken)
            : default;
    }

    /// <summary>For a copy past the writer's own memory: that <paramref name="bytes"/> have gone to the file, and the file offset of the next byte. Everything is written.</summary>
    internal long Skip(long bytes)
    {
        FileSegment? freed;
        long position;
        lock (_lock)
        {
            ThrowIfCompleted();
            freed = _queue.Skip(bytes);
            position = _offset + _queue.Written;
        }

        _ = SegmentPool.Shared.Return(freed);
        return position;
    }

    /// <summary>A write so large that the thresholds have to hold within it.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<FlushResult> WritePacedAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken)
    {
        while (source.Length > MaxUnpacedWrite)
        {
            Copy(source.Span[..MaxUnpacedWrite]);
            source = source[MaxUnpacedWrite..];
            try
            {
                FlushResult result = await FlushAsync(cancellationToken).ConfigureAwait(false);
                if (result.IsCanceled)
                {
                    Copy(source.Span);
                    return result;
                }
            }
            catch (OperationCanceledException) when (!Volatile.Read(ref _isCompleted))
            {
                // The caller's memory is the caller's again: the rest waits here for the next flush or Complete.
                Copy(source.Span);
                throw;
            }
        }

        Copy(source.Span);
        return await FlushAsync(cancellationToken).ConfigureAwait(false);
    }

    private void Copy(ReadOnlySpan<byte> source)
    {
        while (source.Length > 0)
        {
            Span<byte> room = GetSpan();
            int length = Math.Min(room.Length, source.Length);
            source[..length].CopyTo(room);
            _queue.Advance(length);
            source = source[length..];
        }
    }

    /// <summary>A further segment: there is no room, or the writer is completed.</summary>
    private Memory<byte> MakeRoom(int sizeHint)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(sizeHint);
        ThrowIfCompleted();
        FileSegment segment = _queue.Rent(sizeHint);
        FileSegment? freed = segment;
        bool isAppended = false;
        lock (_lock)
        {
            if (!_isCompleted && segment.Capacity >= sizeHint)
            {
                freed = _queue.Append(segment);
                isAppended = true;
            }
        }

        _ = SegmentPool.Shared.Return(freed);
        if (!isAppended)
        {
            ThrowIfCompleted();
            throw new InvalidOperationException($"The memory pool has given less than the {sizeHint} bytes that it was asked for.");
        }

        return segment.Buffer;
    }

    /// <summary>
    /// Has the drain perform what it is set up for, and what comes after it. <paramref name="mayWait"/>: on this thread where that ends by itself, as this thread would
    /// only wait for another.
    /// </summary>
    private void Drain(FileOperation operation, bool mayWait)
    {
        if (!TryPin(operation) && !OnCompleted(operation))
        {
            return;
        }

        while (mayWait && _backend.TryPerform(operation, mayWait: true))
        {
            if (!OnCompleted(operation))
            {
                return;
            }
        }

        _backend.Start(operation);
    }

    private bool OnCompleted(FileOperation operation)
    {
        while (true)
        {
            PooledCompletion<FlushResult>? flushes;
            FileOperation? next;
            FileSegment? freed;
            Exception? error;
            bool release;
            operation.Clear();
            lock (_lock)
            {
                freed = EndDrain(operation);
                error = _error;
                _counts.Add(operation, _coalesced);
                _coalesced = 0;
                flushes = _flushes.TakeReached(_queue.Written, _synced, hasFailed: error is not null);
                next = TryBeginDrain();
                release = next is null && _isCompleted;
            }

            // What a caller's pool throws here concerns nobody who waits: the bytes are written.
            _ = SegmentPool.Shared.Return(freed);
            PendingFlushes.Complete(flushes, default, error, now: false);
            if (release)
            {
                Release();
            }

            if (next is null)
            {
                return false;
            }

            if (TryPin(next))
            {
                return true;
            }
        }
    }

    /// <summary>A caller's memory may throw here: that is what the write fails with.</summary>
    private static bool TryPin(FileOperation operation)
    {
        try
        {
            operation.Pin();
            return true;
        }
        catch (Exception e)
        {
            operation.Finish(e);
            return false;
        }
    }

    private void RecordCounts()
    {
        UnrecordedCounts counts;
        lock (_lock)
        {
            counts = _counts.Take();
        }

        counts.Record();
    }

    /// <summary>Whether the writer was aborted before; where it is completed already, nothing is begun.</summary>
    private bool BeginComplete(Exception? exception, bool mayWait)
    {
        FileOperation? drain;
        bool release;
        lock (_lock)
        {
            if (_isCompleted)
            {
                return _isAborted;
            }

            if (exception is null)
            {
                HandOver();
            }

            Volatile.Write(ref _isCompleted, true);
            drain = TryBeginDrain();
            release = !_isDraining;
        }

        if (release)
        {
            Release();
        }
        else if (drain is not null)
        {
            Drain(drain, mayWait);
        }

        return false;
    }

    private void ThrowIfNotWhole(bool wasAborted)
    {
        Exception? error;
        lock (_lock)
        {
            error = wasAborted ? null : _isAborted ? AbortedException() : _error;
        }

        if (error is not null)
        {
            ExceptionDispatchInfo.Throw(error);
        }
    }

    /// <summary>Gives memory and handle back, by the one who found the writer completed and nothing under way.</summary>
    private void Release()
    {
        FileSegment? freed;
        FileOperation? operation;
        lock (_lock)
        {
            freed = _queue.ReleaseAll();
            operation = _operation;
            _operation = null;
        }

        operation?.Return();
        Exception? error = SegmentPool.Shared.Return(freed);
        try
        {
            // What was preallocated and not written is given back. The file was made empty: with nothing written it is.
            long end = _queue.Written == 0 ? 0 : _offset + _queue.Written;
            if (_isOpenedByPath && _backend.CanSeek && _options.PreallocationSize > end)
            {
                RandomAccess.SetLength(_backend.Handle, end);
            }
        }
        catch (IOException e)
        {
            error ??= FileErrors.WithPath(e, _backend.Path);
        }

        _backend.Release(closeHandle: !_leaveOpen);
        bool isCounting;
        lock (_lock)
        {
            _error ??= error;
            _isReleased = true;
            Monitor.PulseAll(_lock);
            _released?.TrySetResult();

            // Nobody may come to record them any more.
            isCounting = _isAborted && _counts.Any;
        }

        if (isCounting)
        {
            ThreadPool.UnsafeQueueUserWorkItem(static writer => writer.RecordCounts(), this, preferLocal: false);
        }
    }

    /// <summary>The pending flush's task. The token may end it from here on.</summary>
    private ValueTask<FlushResult> Wait(PooledCompletion<FlushResult> pending, CancellationToken cancellationToken)
    {
        ValueTask<FlushResult> task = pending.Task;
        if (cancellationToken.CanBeCanceled)
        {
            CancellationTokenRegistration registration = cancellationToken.UnsafeRegister(static (state, token) => ((FilePipeWriter)state!).OnTokenCanceled(token), this);
            lock (_lock)
            {
                if (_flushes.Contains(pending))
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
        PooledCompletion<FlushResult>? canceled;
        lock (_lock)
        {
            canceled = _flushes.TakeCanceled(token);
        }

        PendingFlushes.Complete(canceled, default, new OperationCanceledException(token), now: true);
    }

    // What follows is called under the lock.

    private void HandOver()
    {
        if (_queue.Advanced > _queue.Flushed)
        {
            _flushesInQueue++;
            _queue.Flush();
        }
    }

    /// <summary>Sets the drain up where it is idle and has something to do.</summary>
    private FileOperation? TryBeginDrain()
    {
        if (_isDraining || _error is not null || _isAborted)
        {
            return null;
        }

        if (_queue.Flushed > _queue.Written)
        {
            _operation ??= _backend.Rent(this);
            _operation.Begin(FileOperationKind.Write, _offset + _queue.Written);
            _operation.NeedsOwnThread = _flushes.WantsSync || !_backend.CanSeek;
            _queue.BeginWrite(_operation, BytesPerWrite);
            _coalesced = Math.Max(0, _flushesInQueue - 1);
            _flushesInQueue = 0;
        }
        else if (_synced < _queue.Written && (_flushes.WantsSync || (_isCompleted && _options.FlushGuarantee == FlushGuarantee.Durable)))
        {
            // Only what is written by now is covered: a flush that comes while this one runs needs the next.
            _operation ??= _backend.Rent(this);
            _operation.Begin(FileOperationKind.Sync, offset: 0);
            _syncing = _queue.Written;
        }
        else
        {
            return null;
        }

        _isDraining = true;
        return _operation;
    }

    /// <summary>Records what came of the drain. An operation that was canceled has moved nothing, and is set up again if it is still wanted.</summary>
    private FileSegment? EndDrain(FileOperation operation)
    {
        _isDraining = false;
        if (operation.Error is not null)
        {
            _error = operation.Error;
        }
        else if (!operation.IsCanceled)
        {
            if (operation.Kind == FileOperationKind.Sync)
            {
                _synced = _syncing;
            }
            else if (operation.Transferred > 0)
            {
                return _queue.OnWritten(operation.Transferred);
            }
            else
            {
                _error = new IOException($"The system took none of {operation.Length} bytes and named no error : '{_backend.Path}'");
            }
        }

        return _error is null ? null : _queue.DropFlushed();
    }

    /// <summary>Whether everything that was flushed is as far as the guarantee asks; else how far the flush waits for it, bytes.</summary>
    private bool IsReached(FlushGuarantee guarantee, out long target)
    {
        if (guarantee == FlushGuarantee.WriteBehind && _options.PauseWriterThreshold > 0)
        {
            target = _queue.Flushed - _options.EffectiveResumeThreshold;
            return _queue.Flushed - _queue.Written < _options.PauseWriterThreshold;
        }

        target = _queue.Flushed;
        return (guarantee == FlushGuarantee.Durable ? _synced : _queue.Written) >= target;
    }

    private void ThrowIfCompleted()
    {
        if (_isCompleted)
        {
            throw new InvalidOperationException("Writing is not allowed after the writer was completed.");
        }
    }

    private static OperationCanceledException AbortedException() => new("The writer was aborted.");
}
