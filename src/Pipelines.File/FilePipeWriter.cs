using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Reading;
using Pipelines.File.Threading;
using Pipelines.File.Writing;

namespace Pipelines.File;

/// <summary>
/// A <see cref="PipeWriter"/> that writes a file directly, without a <see cref="FileStream"/>. A flush returns at once, and another thread
/// writes the collected bytes, in order, in a few large writes. A flush waits only when more bytes are unwritten than
/// <see cref="FilePipeWriterOptions.PauseWriterThreshold"/> allows.
/// </summary>
/// <remarks>
/// <para>One caller uses it at a time; a second call at the same time, <see cref="Complete"/> and Dispose included, throws
/// <see cref="InvalidOperationException"/> and changes nothing. Several flushes may be pending. Any thread may call
/// <see cref="CancelPendingFlush"/>, <see cref="Abort"/> and <see cref="Position"/> at any moment.</para>
/// <para>If a write fails, the pending flushes, every later flush and <see cref="CompleteAsync"/> throw its error, with the path. Nothing
/// is written after the failed byte, so the file holds an unbroken prefix. Canceling a flush ends only the wait: its bytes are written
/// exactly once.</para>
/// </remarks>
public sealed partial class FilePipeWriter : PipeWriter, IDisposable, IAsyncDisposable, ICopyDestination
{
    private static readonly Action<object?, CancellationToken> s_onTokenCanceled =
        static (state, token) => ((FilePipeWriter)state!).OnTokenCanceled(token);

    private readonly FilePipeWriterOptions _options;
    private readonly WriterFile _file;

    // Guarded in part by the lock: see WriteQueue.
    private readonly WriteQueue _queue;
    private readonly FlushWaiters _flushes = new();

    // The writer's lock.
    private readonly WriteLoop _loop;

    // Interlocked: 1 while a call that takes or flushes bytes is running, else 0.
    private int _isInCall;

    // The one task that all flushes after a failure return, so that each throws the error without the stack traces of earlier calls.
    // Not guarded: if two calls create one each, both are right.
    private Task<FlushResult>? _failedFlush;

    // Guarded by the lock: the next flush returns at once with IsCanceled.
    private bool _cancelRequested;

    private FilePipeWriter(WriterFile file, FilePipeWriterOptions options, FastWrites? writes = null)
    {
        _options = options;
        _file = file;
        _queue = new WriteQueue(file.Opened, options);
        _loop = new WriteLoop(file, _queue, _flushes, options, writes ?? FastWrites.Shared);
    }

    /// <summary>
    /// The file offset, in bytes, after everything that was flushed so far. After a failure or <see cref="Abort"/> it is the offset after
    /// everything that was written. In a file that cannot seek it counts from 0.
    /// </summary>
    /// <remarks>
    /// If other programs append to the file, too, it is the offset after this writer's own bytes. On Linux it is exact after each write,
    /// but not with <see cref="FilePipeBackend.Portable"/>: there, and on other systems, it is counted as if no other program wrote.
    /// </remarks>
    public long Position
    {
        get
        {
            lock (_loop)
            {
                return _file.Offset + (_loop is { Error: null, IsAborted: false } ? _queue.Flushed : _queue.Written);
            }
        }
    }

    /// <summary>
    /// The handle of the open file; the writer owns it, and closes it when it is completed. With
    /// <see cref="FilePipeWriterOptions.Replace"/> it is open for reading, too: <see cref="FilePipeReader.Create(SafeFileHandle,
    /// FilePipeReaderOptions?)"/> with <see cref="FilePipeReaderOptions.LeaveOpen"/> reads back what was flushed with
    /// <see cref="FlushGuarantee.Written"/>, before the file has its name.
    /// </summary>
    public SafeFileHandle Handle => _file.Opened.Handle;

    /// <summary>The back end that writes the file. It shows what <see cref="FilePipeBackend.Auto"/> has chosen.</summary>
    public FilePipeBackend Backend => _file.Opened.Kind;

    /// <inheritdoc/>
    public override bool CanGetUnflushedBytes => true;

    /// <summary>
    /// The number of bytes that were advanced over (<see cref="Advance"/>) and not flushed yet. It is 0 after the writer is completed.
    /// </summary>
    public override long UnflushedBytes => IsCompleted ? 0 : _queue.Advanced - _queue.Flushed;

    internal OpenedFile OpenedFile => _file.Opened;

    /// <summary>Whether a flush has to wait, as far as its caller can tell without the lock.</summary>
    internal bool IsBehind => _queue.Advanced - _queue.Written >= _options.PauseWriterThreshold;

    private bool IsCompleted => _queue.IsCompleted;

    /// <summary>Returns memory for the next bytes. Write into it, and then call <see cref="Advance"/>.</summary>
    /// <inheritdoc/>
    /// <param name="sizeHint">The minimum number of bytes that you need; 0 means any number, at least 1.</param>
    /// <exception cref="InvalidOperationException">The writer is completed, or another thread is in a call of the writer.</exception>
    public override Memory<byte> GetMemory(int sizeHint = 0)
    {
        ThrowIfInCall();
        return GetRoom(sizeHint);
    }

    /// <inheritdoc cref="GetMemory"/>
    public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

    /// <summary>
    /// Adds the bytes that you have written into the memory of <see cref="GetMemory"/> or <see cref="GetSpan"/>. The next flush sends them
    /// to the file.
    /// </summary>
    /// <param name="bytes">The number of bytes that you have written into the memory.</param>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="bytes"/> is negative, or more than that memory has left. Nothing has changed.
    /// </exception>
    /// <exception cref="InvalidOperationException">
    /// The writer was completed, or another thread is in a call of the writer. Nothing has changed.
    /// </exception>
    public override void Advance(int bytes)
    {
        ThrowIfInCall();
        AdvanceRoom(bytes);
    }

    /// <summary>
    /// Sends everything that was added so far to the file, and completes when <see cref="FilePipeWriterOptions.FlushGuarantee"/> holds for
    /// it. By default it completes at once, as long as fewer than <see cref="FilePipeWriterOptions.PauseWriterThreshold"/> bytes wait to be
    /// written.
    /// </summary>
    /// <param name="cancellationToken">Ends the wait. The bytes are written all the same.</param>
    /// <exception cref="InvalidOperationException">
    /// Another call of the writer is running; or the writer was completed, and what the flush promises does not hold for all its bytes.
    /// (After Complete there is nothing to flush, so a flush usually returns at once, as .NET's does.)
    /// </exception>
    /// <exception cref="IOException">A write has failed, in this flush or an earlier one.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled, or <see cref="Abort"/> was called.</exception>
    public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
        => FlushAsync(FlushGuarantee.WriteBehind, cancellationToken);

    /// <summary>
    /// Flushes as <see cref="FlushAsync(CancellationToken)"/> does, with the stronger of two guarantees: <paramref name="guarantee"/> and
    /// <see cref="FilePipeWriterOptions.FlushGuarantee"/>.
    /// </summary>
    /// <param name="guarantee">What holds, at least, for all bytes added so far when the flush completes.</param>
    /// <param name="cancellationToken">Ends the wait. The bytes are written all the same.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="guarantee"/> is not a <see cref="FlushGuarantee"/>.</exception>
    /// <inheritdoc cref="FlushAsync(CancellationToken)"/>
    public ValueTask<FlushResult> FlushAsync(FlushGuarantee guarantee, CancellationToken cancellationToken = default)
    {
        if (guarantee is < FlushGuarantee.WriteBehind or > FlushGuarantee.Durable)
        {
            throw new ArgumentOutOfRangeException(nameof(guarantee), guarantee, "Not a FlushGuarantee.");
        }

        EnterCall();
        try
        {
            return FlushCoreAsync(guarantee > _options.OfFlush ? guarantee : _options.OfFlush, cancellationToken);
        }
        finally
        {
            LeaveCall();
        }
    }

    /// <summary>
    /// Makes the pending flushes, or else the next one, return at once with <see cref="FlushResult.IsCanceled"/>. Their bytes are written
    /// all the same.
    /// </summary>
    public override void CancelPendingFlush()
    {
        FlushResult result = new(isCanceled: true, isCompleted: false);
        List<PendingResult<FlushResult>> canceled;
        lock (_loop)
        {
            canceled = _flushes.TakeAll();
            _cancelRequested = canceled.Count == 0;
        }

        FlushWaiters.CompleteNow(canceled, result, null);
    }

    /// <summary>Has everything written that was advanced over. Any thread may call it, beside the calls of the writer's caller.</summary>
    internal void FlushBehind()
    {
        bool wakes;
        lock (_loop)
        {
            if (IsCompleted)
            {
                return;
            }

            _queue.FlushLocked();
            wakes = _loop.TryWakeLocked();
        }

        _loop.WakeIf(wakes);
    }

    /// <summary>Flushes with this guarantee, even if the option's is stronger. Called within a call.</summary>
    private ValueTask<FlushResult> FlushCoreAsync(FlushGuarantee guarantee, CancellationToken cancellationToken)
    {
        PendingResult<FlushResult>? pending = null;
        FileSegment? freed = null;
        Exception? error;
        bool isCanceled = false;
        bool wakes = false;
        bool isInline = false;
        bool isHere = false;
        lock (_loop)
        {
            if (IsCompleted)
            {
                return FlushCompletedLocked(guarantee, cancellationToken);
            }

            _queue.FlushLocked();
            error = _loop.Error;
            if (error is not null)
            {
                // Nothing after the failed byte is written.
                freed = _queue.DropFlushedLocked();
            }
            else
            {
                isCanceled = _cancelRequested;
                _cancelRequested = false;
                FlushTarget target = TargetLocked(guarantee);
                if (!isCanceled && !cancellationToken.IsCancellationRequested && !target.IsReached(_queue.Written, _loop.Synced))
                {
                    isInline = target == new FlushTarget(_queue.Flushed, Synced: false) && _flushes.Count == 0
                        && _loop.MayWriteHereLocked();
                    pending = isInline ? null : _flushes.Add(target, cancellationToken);
                }

                isHere = isInline || (_options.WritesHere && _loop.MayWriteHereLocked());
                wakes = _loop.TryWakeLocked();
            }
        }

        _ = SegmentPool.Shared.Return(freed);
        _loop.WakeIf(wakes, isHere ? CallerMakes.Writes : CallerMakes.Nothing);
        if (isInline)
        {
            return EndedHere(_queue.Written == _queue.Flushed);
        }

        if (pending is not null)
        {
            if (guarantee == FlushGuarantee.WriteBehind)
            {
                FilePipeMetrics.FlushesPaused.Add();
            }

            return pending.RegisterCancellation(s_onTokenCanceled, this, cancellationToken);
        }

        return Ended(error, isCanceled, cancellationToken);
    }

    /// <summary>
    /// After Complete nothing is left to flush, and .NET's writers do not refuse it: a StreamWriter that is disposed of then flushes. It is
    /// refused where the guarantee does not hold: bytes are still being written, <see cref="Abort"/> has dropped them, or no sync follows.
    /// </summary>
    private ValueTask<FlushResult> FlushCompletedLocked(FlushGuarantee guarantee, CancellationToken cancellationToken)
    {
        if (_loop.IsAborted || (_loop.Error is null && !TargetLocked(guarantee).IsReached(_queue.Written, _loop.Synced)))
        {
            ThrowIfCompleted();
        }

        return Ended(_loop.Error, isCanceled: false, cancellationToken);
    }

    /// <summary>
    /// The result of a flush that this thread has written itself: all, unless a failure or Abort came between. Needs no lock: what it reads
    /// is of this thread, or as new as a lock would make it.
    /// </summary>
    private ValueTask<FlushResult> EndedHere(bool isAllWritten)
    {
        Debug.Assert(isAllWritten || _loop.Error is not null || _loop.IsAborted);
        return Ended(_loop.Error ?? (isAllWritten ? null : WriteLoop.AbortedException()), isCanceled: false, default);
    }

    /// <summary>The result of a call that does not have to wait.</summary>
    private ValueTask<FlushResult> Ended(Exception? error, bool isCanceled, CancellationToken cancellationToken)
        => error is not null ? new ValueTask<FlushResult>(Failed(error))
            : isCanceled ? new ValueTask<FlushResult>(new FlushResult(isCanceled: true, isCompleted: false))
            : cancellationToken.IsCancellationRequested ? ValueTask.FromCanceled<FlushResult>(cancellationToken)
            : default;

    private Memory<byte> GetRoom(int sizeHint)
        => _queue.TryGetRoom(sizeHint, out Memory<byte> room) ? room : MakeRoom(sizeHint);

    private void AdvanceRoom(int bytes)
    {
        // If the writer was aborted meanwhile, the next call throws.
        if (!_queue.TryAdvance(bytes, out int room) && !_loop.IsAborted)
        {
            ThrowIfCompleted();
            throw new ArgumentOutOfRangeException(nameof(bytes), bytes, bytes < 0
                ? "Advance takes the number of bytes that you have written into the memory of GetMemory or GetSpan; it cannot go back."
                : $"Advance was called with more bytes than the {room} that are left of the last GetMemory or GetSpan. "
                    + "Call GetMemory or GetSpan again before you write more.");
        }
    }

    /// <summary>Appends a segment, because the memory at hand is too small, or throws, because the writer is completed.</summary>
    private Memory<byte> MakeRoom(int sizeHint)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(sizeHint);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(sizeHint, WriteQueue.MaxRoom);
        ThrowIfCompleted();
        FileSegment segment = _queue.Rent(sizeHint);
        FileSegment? freed;
        lock (_loop)
        {
            _queue.AppendLocked(segment, sizeHint, out freed);
        }

        _ = SegmentPool.Shared.Return(freed);

        // If the writer was completed meanwhile, possibly by the code of a caller's pool, its end releases the segment.
        if (_queue.TryGetRoom(sizeHint, out Memory<byte> room))
        {
            return room;
        }

        ThrowIfCompleted();
        throw new InvalidOperationException("The memory pool returned less than is needed.");
    }

    private Task<FlushResult> Failed(Exception error) => _failedFlush ??= Task.FromException<FlushResult>(error);

    private void OnTokenCanceled(CancellationToken token)
    {
        OperationCanceledException error = new(token);
        List<PendingResult<FlushResult>> canceled;
        lock (_loop)
        {
            canceled = _flushes.TakeCanceled(token);
        }

        FlushWaiters.CompleteNow(canceled, default, error);
    }

    /// <summary>What has to be true of the bytes before a flush completes.</summary>
    private FlushTarget TargetLocked(FlushGuarantee guarantee)
        => guarantee != FlushGuarantee.WriteBehind || _options.PauseWriterThreshold == 0
            ? new FlushTarget(_queue.Flushed, guarantee == FlushGuarantee.Durable)
            : _queue.Flushed - _queue.Written < _options.PauseWriterThreshold ? default
            : new FlushTarget(_queue.Flushed - _options.EffectiveResumeThreshold, Synced: false);

    /// <summary>
    /// Begins a call that takes or flushes bytes, so that a second one throws and changes nothing. It is a full fence: the caller's later
    /// reads are not moved before it.
    /// </summary>
    /// <exception cref="InvalidOperationException">Another call is running. Do not call <see cref="LeaveCall"/> then.</exception>
    private void EnterCall() => ThrowIfOverlapping(Interlocked.Exchange(ref _isInCall, 1));

    private void LeaveCall() => Volatile.Write(ref _isInCall, 0);

    /// <summary>Throws if a call is running. For calls that are too short to be marked as running.</summary>
    private void ThrowIfInCall() => ThrowIfOverlapping(Volatile.Read(in _isInCall));

    private static void ThrowIfOverlapping(int isInCall)
    {
        if (isInCall != 0)
        {
            throw new InvalidOperationException("Another call of this writer is under way. Only one caller may use a writer at a time: "
                + "await each WriteAsync, or let threads take turns, for example with a SemaphoreSlim. To give up from another thread, "
                + "call Abort.");
        }
    }

    private void ThrowIfCompleted()
    {
        if (IsCompleted)
        {
            throw new InvalidOperationException("Writing is not allowed after the writer was completed.");
        }
    }
}
