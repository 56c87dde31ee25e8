using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;

namespace Pipelines.File;

/// <summary>
/// A <see cref="PipeWriter"/> that sits directly on a file: a flush hands its bytes to a drain that writes them behind the caller's back, in order, few large
/// vectored writes for many small flushes, with thresholds that bound what waits.
/// </summary>
/// <remarks>
/// <para>As <c>PipeWriter.Create(new FileStream(…))</c>, plus write-behind. One caller uses it at a time; <see cref="CancelPendingFlush"/> may come from any thread, and
/// several flushes may be pending.</para>
/// <para>The first write that fails is thrown, with the path, by the pending and every later flush and by <see cref="CompleteAsync"/>; nothing after the failed byte is
/// written, so the file holds an unbroken prefix. A flush that is canceled ends the wait only: its bytes are written exactly once.</para>
/// </remarks>
public sealed class FilePipeWriter : PipeWriter, IFileOperationOwner
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

    // The lock, and the bytes, of which it guards what WriteQueue says; it guards every field below. Nothing is called under it that waits or that runs a caller's
    // code, but for the Rent of a caller's memory pool.
    private readonly WriteQueue _queue;

    // The drain: the back end's while _isDraining, else whoever's holds the lock.
    private FileOperation? _operation;
    private bool _isDraining;

    // Flushes that wait, oldest first. Whoever takes one out, under the lock, is the one who completes it.
    private PooledCompletion<FlushResult>? _firstPending;
    private PooledCompletion<FlushResult>? _lastPending;
    private PooledCompletion<FlushResult>? _reusable;

    private Exception? _error;
    private long _synced;
    private long _syncing;
    private int _flushesInQueue;
    private bool _cancelRequested;
    private bool _isCompleted;

    // Whoever awaits CompleteAsync while the drain runs.
    private PooledCompletion<FlushResult>? _completing;

    private FilePipeWriter(FileBackend backend, FilePipeWriterOptions options, long offset, bool leaveOpen, bool isOpenedByPath)
    {
        _backend = backend;
        _options = options;
        _offset = offset;
        _leaveOpen = leaveOpen;
        _isOpenedByPath = isOpenedByPath;

        // Where one call writes one segment only, small segments would make small writes.
        int maxSegments = backend.MaxBuffersPerOperation;
        int segmentSize = maxSegments > 1 ? options.MinimumBufferSize : Math.Max(options.MinimumBufferSize, FilePipeWriterOptions.DefaultMinimumBufferSize);
        _queue = new WriteQueue(options.Pool, segmentSize, maxSegments);
    }

    /// <summary>
    /// The file offset, in bytes, after everything that was flushed so far; after a failure, after everything that was written. A file that cannot seek counts from 0.
    /// </summary>
    public long Position
    {
        get
        {
            lock (_queue)
            {
                return _offset + (_error is null ? _queue.Flushed : _queue.Written);
            }
        }
    }

    /// <summary>The back end in use: the one that <see cref="FilePipeBackend.Auto"/> chose.</summary>
    public FilePipeBackend Backend => _backend.Kind;

    /// <inheritdoc/>
    public override bool CanGetUnflushedBytes => true;

    /// <summary>Bytes that were advanced over and not yet handed over by a flush.</summary>
    public override long UnflushedBytes => _queue.Advanced - _queue.Flushed;

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
        long end = isOpenedByPath && options.Mode == FileMode.Append ? backend.Shape.Length : 0;
        return new FilePipeWriter(backend, options, options.Offset ?? end, leaveOpen, isOpenedByPath);
    }

    /// <inheritdoc/>
    public override Memory<byte> GetMemory(int sizeHint = 0)
    {
        MakeRoom(sizeHint);
        return _queue.Room;
    }

    /// <inheritdoc/>
    public override Span<byte> GetSpan(int sizeHint = 0)
    {
        MakeRoom(sizeHint);
        return _queue.Room.Span;
    }

    /// <inheritdoc/>
    public override void Advance(int bytes) => _queue.Advance(bytes);

    /// <summary>
    /// Hands everything over that was advanced over, and completes when <see cref="FilePipeWriterOptions.FlushGuarantee"/> holds: by default at once while less than
    /// <see cref="FilePipeWriterOptions.PauseWriterThreshold"/> bytes wait to be written.
    /// </summary>
    /// <param name="cancellationToken">Ends the wait, not the writing.</param>
    /// <exception cref="InvalidOperationException">The writer is completed.</exception>
    /// <exception cref="IOException">A write has failed, now or earlier.</exception>
    public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
    {
        bool start;
        ValueTask<FlushResult> answer = default;
        lock (_queue)
        {
            ThrowIfCompleted();
            if (_error is not null)
            {
                // Nothing after the failed byte is written.
                _queue.Flush();
                _queue.DropFlushed();
                return ValueTask.FromException<FlushResult>(_error);
            }

            if (_queue.Advanced > _queue.Flushed)
            {
                _flushesInQueue++;
                _queue.Flush();
            }

            start = TryPrepareDrain(isSyncWanted: _options.FlushGuarantee == FlushGuarantee.Durable);
            if (_cancelRequested)
            {
                _cancelRequested = false;
                answer = new ValueTask<FlushResult>(new FlushResult(isCanceled: true, isCompleted: false));
            }
            else if (cancellationToken.IsCancellationRequested)
            {
                answer = ValueTask.FromCanceled<FlushResult>(cancellationToken);
            }
            else
            {
                (bool isDone, long target) = Guarantee();
                if (!isDone)
                {
                    answer = Wait(target, cancellationToken);
                }
            }
        }

        if (start)
        {
            _backend.Start(_operation!);
        }

        return answer;
    }

    /// <summary>
    /// Copies <paramref name="source"/> and flushes. Canceled or not, its bytes are in the writer from here on, and are written exactly once.
    /// </summary>
    /// <inheritdoc cref="FlushAsync"/>
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
        PooledCompletion<FlushResult>? pending;
        lock (_queue)
        {
            pending = _firstPending;
            _firstPending = _lastPending = null;
            _cancelRequested |= pending is null;
        }

        CompleteAll(pending, new FlushResult(isCanceled: true, isCompleted: false), null, mayRunInline: false);
    }

    /// <summary>
    /// Writes out everything, closes the file, and throws if any byte could not be written. Blocks until then: prefer <see cref="CompleteAsync"/>.
    /// </summary>
    /// <param name="exception">Anything but <see langword="null"/> drops what was not flushed; what was flushed is written all the same.</param>
    /// <exception cref="IOException">A write has failed, now or earlier. The file is closed.</exception>
    public override void Complete(Exception? exception = null)
    {
        bool start;
        lock (_queue)
        {
            if (!TryBeginComplete(exception))
            {
                return;
            }

            start = TryPrepareDrain(isSyncWanted: true);
        }

        if (start && !_backend.CanBlock)
        {
            _backend.Start(_operation!);
        }
        else if (start)
        {
            // This thread would wait for another: it may as well write.
            do
            {
                _backend.Perform(_operation!);
            }
            while (OnCompleted(_operation!));
        }

        lock (_queue)
        {
            while (_isDraining)
            {
                Monitor.Wait(_queue);
            }
        }

        EndComplete();
    }

    /// <summary>Writes out everything, closes the file, and throws if any byte could not be written.</summary>
    /// <inheritdoc cref="Complete"/>
    public override async ValueTask CompleteAsync(Exception? exception = null)
    {
        bool start;
        PooledCompletion<FlushResult>? drained = null;
        lock (_queue)
        {
            if (!TryBeginComplete(exception))
            {
                return;
            }

            start = TryPrepareDrain(isSyncWanted: true);
            if (_isDraining)
            {
                drained = _completing = new PooledCompletion<FlushResult>(_options.WriterScheduler, _options.UseSynchronizationContext, static _ => { });
            }
        }

        if (start)
        {
            _backend.Start(_operation!);
        }

        if (drained is not null)
        {
            await drained.Task.ConfigureAwait(false);
        }

        EndComplete();
    }

    bool IFileOperationOwner.OnCompleted(FileOperation operation) => OnCompleted(operation);

    /// <summary>For a copy past the writer's own memory: flushes, and completes when nothing waits to be written, whatever the guarantee.</summary>
    internal async ValueTask<FlushResult> FlushWrittenAsync(CancellationToken cancellationToken)
    {
        FlushResult result = await FlushAsync(cancellationToken).ConfigureAwait(false);
        if (result.IsCanceled)
        {
            return result;
        }

        ValueTask<FlushResult> written = default;
        lock (_queue)
        {
            if (_error is not null)
            {
                // The drain may have failed since the flush was done: what is copied now would come after the failed byte.
                throw _error;
            }

            if (_queue.Written < _queue.Flushed)
            {
                written = Wait(_queue.Flushed, cancellationToken);
            }
        }

        return await written.ConfigureAwait(false);
    }

    /// <summary>For a copy past the writer's own memory: where the next byte goes, and that <paramref name="bytes"/> have gone there.</summary>
    internal long SkipWritten(long bytes)
    {
        lock (_queue)
        {
            ThrowIfCompleted();
            _queue.Skip(bytes);
            return _offset + _queue.Written;
        }
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
            catch (OperationCanceledException)
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

    private bool OnCompleted(FileOperation operation)
    {
        PooledCompletion<FlushResult>? pending;
        PooledCompletion<FlushResult>? completing = null;
        Exception? error;
        bool again;

        // Once the lock is released the operation may be in use again.
        bool isCanceled = operation.IsCanceled;
        lock (_queue)
        {
            Record(operation);
            operation.Clear();
            _isDraining = false;
            again = TryPrepareDrain(isSyncWanted: _isCompleted || _firstPending is not null);
            pending = TakePending();
            error = _error;
            if (!again && _isCompleted)
            {
                completing = _completing;
                _completing = null;
                Monitor.PulseAll(_queue);
            }
        }

        // Where this thread goes on writing, continuations run elsewhere.
        bool mayRunInline = !again && !isCanceled;
        CompleteAll(pending, default, error, mayRunInline && completing is null);
        completing?.Complete(default, null, mayRunInline);
        return again;
    }

    private void EndComplete()
    {
        Exception? error;
        lock (_queue)
        {
            error = _error;
            _queue.ReleaseAll();
            _operation?.Return();
            _operation = null;
        }

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
        finally
        {
            _backend.Release(closeHandle: !_leaveOpen);
        }

        if (error is not null)
        {
            _error = error;
            throw error;
        }
    }

    private void MakeRoom(int sizeHint)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(sizeHint);
        if (Volatile.Read(ref _isCompleted) || !_queue.HasRoom(sizeHint))
        {
            lock (_queue)
            {
                ThrowIfCompleted();
                _queue.Append(sizeHint);
            }
        }
    }

    private void OnTokenCanceled(CancellationToken token)
    {
        PooledCompletion<FlushResult>? canceled = null;
        lock (_queue)
        {
            PooledCompletion<FlushResult>? pending = _firstPending;
            _firstPending = _lastPending = null;
            while (pending is not null)
            {
                PooledCompletion<FlushResult>? next = pending.Next;
                if (pending.CancellationToken == token)
                {
                    pending.Next = canceled;
                    canceled = pending;
                }
                else
                {
                    AddPending(pending);
                }

                pending = next;
            }
        }

        CompleteAll(canceled, default, canceled is null ? null : new OperationCanceledException(token), mayRunInline: false);
    }

    private static void CompleteAll(PooledCompletion<FlushResult>? pending, FlushResult result, Exception? error, bool mayRunInline)
    {
        while (pending is not null)
        {
            // Once it is completed it may be waiting for another flush already.
            PooledCompletion<FlushResult>? next = pending.Next;
            pending.Next = null;
            pending.Complete(result, error, mayRunInline && next is null);
            pending = next;
        }
    }

    // What follows is called under the lock.

    /// <summary><see langword="false"/>: it was begun before, and an error of then is thrown again.</summary>
    private bool TryBeginComplete(Exception? exception)
    {
        if (_isCompleted)
        {
            return _error is null ? false : throw _error;
        }

        if (exception is null && _queue.Advanced > _queue.Flushed)
        {
            _flushesInQueue++;
            _queue.Flush();
        }

        Volatile.Write(ref _isCompleted, true);
        return true;
    }

    /// <summary>Sets the drain up where it is idle and has something to do: <see langword="true"/>, the caller has it performed.</summary>
    private bool TryPrepareDrain(bool isSyncWanted)
    {
        if (_isDraining || _error is not null)
        {
            return false;
        }

        if (_queue.Flushed > _queue.Written)
        {
            _operation ??= FileOperation.Rent(this);
            _operation.Kind = FileOperationKind.Write;
            _operation.Offset = _offset + _queue.Written;
            _queue.Lend(_operation, BytesPerWrite);
            if (_flushesInQueue > 1)
            {
                FilePipeMetrics.FlushesCoalesced(_flushesInQueue - 1);
            }

            _flushesInQueue = 0;
        }
        else if (isSyncWanted && _options.FlushGuarantee == FlushGuarantee.Durable && _synced < _queue.Written)
        {
            // Only what is written by now is covered: a flush that comes while this one runs needs the next.
            _operation ??= FileOperation.Rent(this);
            _operation.Kind = FileOperationKind.Sync;
            _syncing = _queue.Written;
        }
        else
        {
            return false;
        }

        _isDraining = true;
        return true;
    }

    private void Record(FileOperation operation)
    {
        if (operation.Error is not null)
        {
            _error = operation.Error;
        }
        else if (operation.IsCanceled)
        {
            // Nothing has moved: it is set up again.
        }
        else if (operation.Kind == FileOperationKind.Sync)
        {
            _synced = _syncing;
            FilePipeMetrics.Synced();
        }
        else if (operation.Transferred == 0)
        {
            _error = new IOException($"The system took none of {operation.Length} bytes and named no error : '{_backend.Path}'");
        }
        else
        {
            FilePipeMetrics.Wrote(operation.Transferred);
            _queue.OnWritten(operation.Transferred);
        }

        if (_error is not null)
        {
            _queue.DropFlushed();
        }
    }

    /// <summary>Whether the flush of this moment is done, else the mark that it waits for.</summary>
    private (bool IsDone, long Target) Guarantee()
    {
        if (_options.FlushGuarantee == FlushGuarantee.WriteBehind && _options.PauseWriterThreshold > 0)
        {
            if (_queue.Flushed - _queue.Written < _options.PauseWriterThreshold)
            {
                return (true, 0);
            }

            FilePipeMetrics.FlushPaused();
            return (false, _queue.Flushed - _options.EffectiveResumeThreshold);
        }

        return (Reached() >= _queue.Flushed, _queue.Flushed);
    }

    private long Reached() => _options.FlushGuarantee == FlushGuarantee.Durable ? _synced : _queue.Written;

    private ValueTask<FlushResult> Wait(long target, CancellationToken cancellationToken)
    {
        PooledCompletion<FlushResult>? pending = _reusable;
        if (pending is null)
        {
            pending = new PooledCompletion<FlushResult>(_options.WriterScheduler, _options.UseSynchronizationContext, Return);
        }
        else
        {
            _reusable = pending.Next;
            pending.Next = null;
        }

        pending.Target = target;
        AddPending(pending);
        ValueTask<FlushResult> task = pending.Task;
        if (cancellationToken.CanBeCanceled)
        {
            pending.Begin(cancellationToken);
            CancellationTokenRegistration registration = cancellationToken.UnsafeRegister(static (state, token) => ((FilePipeWriter)state!).OnTokenCanceled(token), this);
            if (_lastPending == pending)
            {
                pending.Registration = registration;
            }
        }

        return task;
    }

    private void Return(PooledCompletion<FlushResult> completion)
    {
        lock (_queue)
        {
            completion.Next = _reusable;
            _reusable = completion;
        }
    }

    private void AddPending(PooledCompletion<FlushResult> pending)
    {
        pending.Next = null;
        if (_lastPending is null)
        {
            _firstPending = pending;
        }
        else
        {
            _lastPending.Next = pending;
        }

        _lastPending = pending;
    }

    /// <summary>Takes out the flushes whose wait is over: a list. Their marks only ever grow.</summary>
    private PooledCompletion<FlushResult>? TakePending()
    {
        PooledCompletion<FlushResult>? first = _firstPending;
        PooledCompletion<FlushResult>? last = null;
        PooledCompletion<FlushResult>? next = first;
        long reached = Reached();
        while (next is not null && (_error is not null || next.Target <= reached))
        {
            last = next;
            next = next.Next;
        }

        if (last is null)
        {
            return null;
        }

        last.Next = null;
        _firstPending = next;
        if (next is null)
        {
            _lastPending = null;
        }

        return first;
    }

    private void ThrowIfCompleted()
    {
        if (_isCompleted)
        {
            throw new InvalidOperationException("Writing is not allowed after the writer was completed.");
        }
    }
}
