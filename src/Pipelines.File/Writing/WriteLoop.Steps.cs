using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <content>The loop and its steps. The lock is held while a step is set up and while its result is recorded.</content>
internal sealed partial class WriteLoop
{
    /// <summary>
    /// The maximum number of bytes of one write; chosen by measurement:
    /// benchmarks/defaults.md.
    /// </summary>
    internal const int BytesPerWrite = 512 * 1024;

    /// <summary>The number of unwritten bytes that ends <see cref="StayAwake"/>: a write of them is no short one any more.</summary>
    private const int EnoughBytes = 64 * 1024;

    // The maximum duration of StayAwake after a sync, in Stopwatch ticks: 100 µs, in which dozens of callers go on.
    private static readonly long s_afterSyncTicks = Stopwatch.Frequency / 10_000;

    // Rented before anybody counts on the loop: waking it must not fail. Owned by the step that runs. A caller's memory pool gets its
    // memory back after a write, and its code runs on the application's threads only.
    private readonly FileRequest _request = Rent(file, options);

    // The flushes that a step has served, while it ends.
    private readonly List<PendingResult<FlushResult>> _reached = [];

    // Changed under the lock, by the thread that wakes the loop or ends a step.
    private Step _step;

    // With ResumesOnPool, under the lock: whether the step is over, and an application's thread is to go on.
    private bool _isOver;

    // The number of bytes that were written when the last write began.
    private long _writtenBefore;

    // When the last write or sync began: what FastWrites.Begin has returned.
    private long _stepBegan;

    private enum Step
    {
        /// <summary>None is due, and whoever finds one due wakes the loop.</summary>
        Sleep,

        Write,
        Sync,

        /// <summary>Everything is written or given up, and only the name and the closing follow.</summary>
        Close,

        /// <summary>File and memory are released.</summary>
        Closed,
    }

    /// <summary>Whether nothing has failed, and the writer was not aborted. A racy hint, readable without the lock.</summary>
    internal bool GoesOn => Error is null && !IsAborted;

    private bool IsAllWritten => queue.Written == queue.Flushed;

    // What is to be done next.
    private Step NextStepLocked
    {
        get
        {
            if (!GoesOn)
            {
                return IsCompleted ? Step.Close : Step.Sleep;
            }

            // A flush that waits for a sync lets one more write go first, so that other flushes share its sync. It does not let a second
            // one go first: others that keep writing must not delay it for ever.
            if (!IsAllWritten && !flushes.WantsSync(_writtenBefore))
            {
                return Step.Write;
            }

            bool isLast = IsCompleted && IsAllWritten && options.FlushGuarantee == FlushGuarantee.Durable
                && !(_isGivenUp && file.IsUnfinished);
            return Synced < queue.Written && (isLast || flushes.WantsSync(queue.Written)) ? Step.Sync
                : IsCompleted ? Step.Close : Step.Sleep;
        }
    }

    /// <summary>
    /// Whether the loop sleeps and a step is due. If so, that step has begun, and the caller has to wake the loop without the lock.
    /// </summary>
    internal bool TryWakeLocked() => _step == Step.Sleep && TryBeginLocked();

    /// <summary>
    /// Writes bytes of the caller's from where they are, without a copy, if nothing else is to be written and this thread, the caller's in
    /// a call, may do it. Returns whether it has tried. Fewer are written if the system takes fewer, or fails.
    /// </summary>
    internal unsafe bool TryWriteHere(ReadOnlyMemory<byte> bytes, out int written)
    {
        written = 0;
        fixed (byte* address = bytes.Span)
        {
            lock (this)
            {
                if (bytes.IsEmpty || Error is not null || queue.Advanced > queue.Written || !MayWriteHereLocked(bytes.Length))
                {
                    return false;
                }

                Debug.Assert(!IsCompleted && flushes.Count == 0);
                _step = Step.Write;
                _writtenBefore = queue.Written;
                _request.Begin(FileRequestKind.Write, file.Offset + queue.Written);
                _request.Add(bytes, (nint)address);
                _stepBegan = writes.Begin(file.Volume);
            }

            // Such a write ends by itself, so the memory is not used any more when this returns.
            GoOn(CallerMakes.Writes);
            written = (int)(queue.Written - _writtenBefore);
            return true;
        }
    }

    /// <summary>Wakes the loop, if that is due: it runs on this thread up to its first call that is not to be made here.</summary>
    internal void WakeIf(bool isDue, CallerMakes makes = CallerMakes.Nothing)
    {
        if (isDue)
        {
            GoOn(makes);
        }
    }

    /// <summary>A step is over: goes on to the next one.</summary>
    void IRequestOwner.OnEnded(FileRequest request)
    {
        if (_step == Step.Close)
        {
            Close(isFileClosed: true);
        }
        else if (TryEnd())
        {
            GoOn(CallerMakes.Nothing);
        }
    }

    /// <summary>
    /// With a caller's pool: a step is over. A thread of the application's pool goes on, or one that blocks in
    /// <see cref="WaitForRelease"/>, whichever comes first.
    /// </summary>
    void IRequestOwner.Resume(FileRequest request)
    {
        lock (this)
        {
            _isOver = true;
            Monitor.PulseAll(this);
        }

        ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
    }

    /// <summary>Goes on after a step that is over, unless another thread does.</summary>
    public void Execute()
    {
        lock (this)
        {
            if (!_isOver)
            {
                return;
            }

            _isOver = false;
        }

        _request.End();
    }

    private static FileRequest Rent(WriterFile file, FilePipeWriterOptions options)
    {
        FileRequest request = file.Opened.Rent();
        request.ResumesOnPool = options.Pool is not null;
        return request;
    }

    /// <summary>
    /// Performs the step that has begun, and those after it: writes all, then syncs what waits for a sync. When the writer is completed:
    /// syncs, and closes the file, which gives it its name. The order keeps the file valid after a power failure: the bytes, a sync that
    /// covers them and the length, the name. Returns when nothing is due, or another thread has a step, whose end goes on.
    /// </summary>
    private void GoOn(CallerMakes makes)
    {
        do
        {
            // From here on Abort is too late. This may be the thread of a caller of CompleteAsync, which must not wait.
            if (_step == Step.Close && (makes == CallerMakes.Everything || !file.MayWaitToClose(queue.Written)))
            {
                Close(isFileClosed: false);
                return;
            }

            bool isHere = makes == CallerMakes.Everything || (makes == CallerMakes.Writes && _step == Step.Write);
            if (!isHere || !file.Opened.CanSeek || !file.Opened.TryPerform(_request, mayWait: true))
            {
                file.Opened.Run(_request, this);
                return;
            }
        }
        while (TryEnd());
    }

    /// <summary>Sets the request up for the next step. Returns whether there is one: if not, the next thread may wake the loop.</summary>
    private bool TryBeginLocked()
    {
        Debug.Assert(Monitor.IsEntered(this));
        _step = NextStepLocked;
        switch (_step)
        {
            case Step.Write:
                _writtenBefore = queue.Written;
                _request.Begin(FileRequestKind.Write, file.Offset + queue.Written);
                if (flushes.WantsSync(queue.Flushed)
                    || (IsCompleted && (file.IsUnfinished || options.FlushGuarantee == FlushGuarantee.Durable)))
                {
                    // The next step waits for the device: one thread performs both.
                    _request.Threads = WaitingThreads.Syncs;
                }

                queue.BeginWriteLocked(_request);
                Debug.Assert(_request.Length > 0 && _request.Length <= queue.Flushed - queue.Written);
                break;
            case Step.Sync:
                Debug.Assert(Synced < queue.Written);
                _request.Begin(FileRequestKind.Sync, offset: 0);
                break;
            case Step.Close:
                _request.BeginStep(CloseFile);
                break;
        }

        _stepBegan = _step is Step.Write or Step.Sync ? writes.Begin(file.Volume) : 0;
        return _step != Step.Sleep;
    }

    /// <summary>
    /// Records the result of a write or a sync, frees the segments that are written, and completes the flushes that have reached their
    /// target. After a failure nothing more is written: it frees all flushed segments and completes all flushes. A canceled step has moved
    /// no bytes, and is repeated if it is still due. A caller's pool has its memory back before a flush completes. Returns whether another
    /// step has begun.
    /// </summary>
    private bool TryEnd()
    {
        writes.End(file.Volume, _stepBegan, _request.Length);
        _request.Clear();
        FileSegment? freed;
        int waiting;
        lock (this)
        {
            waiting = flushes.Count;
            RecordLocked();
            Debug.Assert(Synced <= queue.Written && queue.Written <= queue.Flushed && queue.Flushed <= queue.Advanced);
            bool isWell = Error is null;
            flushes.TakeReached(isWell ? queue.Written : long.MaxValue, isWell ? Synced : long.MaxValue, _reached);
            freed = isWell ? queue.TakeWrittenLocked() : queue.DropFlushedLocked();
        }

        _ = SegmentPool.Shared.Return(freed);
        CompleteReached(Error ?? (IsAborted ? AbortedException() : null));
        if (WaitingThreads.Current is { } threads)
        {
            StayAwake(waiting, threads);
        }

        lock (this)
        {
            return TryBeginLocked();
        }
    }

    private void RecordLocked()
    {
        if (_request.Error is not null)
        {
            FailLocked(_request.Error);
        }
        else if (_request.IsCanceled)
        {
            if (!IsAborted)
            {
                Probe.Rare("a call of the writer is canceled without being asked for");
            }
        }
        else if (_step == Step.Sync)
        {
            // Nothing was written since the sync began. A flush that came meanwhile needs the next sync.
            Synced = queue.Written;
        }
        else if (_request.Transferred == 0)
        {
            FailLocked(new IOException($"The system took none of {_request.Length} bytes and named no error : '{file.Opened.Path}'"));
        }
        else
        {
            queue.OnWrittenLocked(_request.Transferred);
            file.OnWritten(queue.Written);
        }
    }

    /// <summary>Completes the flushes that were taken out, by work items: this may be a thread of the library.</summary>
    private void CompleteReached(Exception? error)
    {
        foreach (PendingResult<FlushResult> flush in _reached)
        {
            flush.CompleteOnPool(default, error);
        }

        _reached.Clear();
    }

    /// <summary>
    /// Keeps the loop on its waiting thread for a moment. After a write that no flush has waited for, until one does: the next bytes often
    /// come at once, and nobody has to wake a thread for them (a flush of 4 KiB takes 1.4 times as long without it). After a sync, until
    /// as many flushes as it has served are back, to share the next one.
    /// </summary>
    /// <param name="waiting">The number of pending flushes when the step ended, those that it has served included.</param>
    /// <param name="threads">Those that this thread is one of: after a write it goes on with what waits for one.</param>
    private void StayAwake(int waiting, WaitingThreads threads)
    {
        long now = Stopwatch.GetTimestamp();
        long end = now + (_step == Step.Sync ? Math.Min((now - _stepBegan) / 2, s_afterSyncTicks)
            : waiting == 0 ? writes.AwakeTicks : 0);
        int wanted = _step == Step.Sync ? waiting : 1;
        while (flushes.Count < wanted && queue.Flushed - queue.Written < EnoughBytes && GoesOn && !IsCompleted
            && (_step == Step.Sync || threads.QueuedCount == 0) && Stopwatch.GetTimestamp() < end)
        {
            // It yields instead of spinning: a thread that is going to flush may be waiting for this very processor.
            Thread.Yield();
        }
    }

    /// <summary>Closes the file and releases the memory. This is the end of the loop.</summary>
    private void Close(bool isFileClosed)
    {
        FileSegment? freed;
        FileSegment? held;
        Exception? reason;
        lock (this)
        {
            flushes.TakeReached(long.MaxValue, long.MaxValue, _reached);
            freed = queue.ReleaseAllLocked(IsAborted, out held);
            reason = Error;
        }

        file.Opened.Return(_request);
        if (!isFileClosed)
        {
            CloseFile();
        }

        Exception? poolError = SegmentPool.Shared.Return(freed);
        poolError = held?.TryUnpin() ?? poolError;
        CompleteReached(reason ?? (_reached.Count == 0 ? null : AbortedException()));
        lock (this)
        {
            FailLocked(poolError);
            _step = Step.Closed;
            TellReleaseLocked();
        }
    }

    /// <summary>Gives the file its name, if it gets one, and closes it. Callers that wait for the release get the error.</summary>
    private void CloseFile()
    {
        // What this says does not change from the beginning of the closing on.
        bool takesName = file.IsUnfinished && GoesOn && IsAllWritten && !_isGivenUp;
        Debug.Assert(!takesName || options.FlushGuarantee != FlushGuarantee.Durable || Synced == queue.Written);
        try
        {
            file.Close(queue.Written, takesName);
        }
        catch (Exception e)
        {
            lock (this)
            {
                FailLocked(e);
            }
        }
    }
}
