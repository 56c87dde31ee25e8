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

    // The maximum duration of StayAwake, in Stopwatch ticks: 100 µs, in which dozens of continuations run.
    private static readonly long s_awakeTicks = Stopwatch.Frequency / 10_000;

    // The flushes that a step has served, while it ends.
    private readonly List<PendingResult<FlushResult>> _reached = [];

    // The step that runs. With ResumesOnPool, under the lock: whether it is over, and an application's thread is to go on.
    private Step _step;
    private bool _isOver;

    // The number of bytes that were written when the last write began, and the number of flushes handed over since then.
    private long _writtenBefore;
    private int _flushesInQueue;

    // When the last write or sync began: what FastWrites.Begin has returned.
    private long _stepBegan;

    private enum Step
    {
        Sleep,
        Write,
        Sync,
        Close,
    }

    private bool GoesOn => Error is null && !IsAborted;

    private bool IsAllWritten => _queue.Written == _queue.Flushed;

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
            if (!IsAllWritten && !_flushes.WantsSync(_writtenBefore))
            {
                return Step.Write;
            }

            bool isLast = IsCompleted && IsAllWritten && _options.FlushGuarantee == FlushGuarantee.Durable
                && !(_isGivenUp && _file.IsUnfinished);
            return Synced < _queue.Written && (isLast || _flushes.WantsSync(_queue.Written)) ? Step.Sync
                : IsCompleted ? Step.Close : Step.Sleep;
        }
    }

    /// <summary>A step is over: goes on to the next one. With a caller's pool that is an application's thread's to do.</summary>
    void IRequestOwner.OnEnded(FileRequest request)
    {
        if (_step == Step.Close)
        {
            Close(isFileClosed: true);
            return;
        }

        End();
        GoOn(Here.None);
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

    /// <summary>
    /// Writes all, then syncs what waits for a sync. When the writer is completed: syncs, and closes the file, which gives it its name. The
    /// order keeps the file valid after a power failure: the bytes, a sync that covers them and the length, the name. Returns when nothing
    /// is due, or another thread has a step, whose end goes on.
    /// </summary>
    private void GoOn(Here here)
    {
        while (Begin() is not Step.Sleep)
        {
            if (_step == Step.Close)
            {
                // From here on Abort is too late. This may be the thread of a caller of CompleteAsync, which must not wait.
                if (here == Here.All || !_file.MayWaitToClose(_queue.Written))
                {
                    Close(isFileClosed: false);
                    return;
                }

                _request.BeginStep(CloseFile);
            }
            else if ((here == Here.All || (here == Here.Writes && _step == Step.Write))
                && _file.Opened.CanSeek && _file.Opened.Try(_request, mayWait: true))
            {
                End();
                continue;
            }

            _file.Opened.Run(_request, this);
            return;
        }
    }

    /// <summary>Sets the request up for the next step, and returns it. <see cref="Step.Sleep"/>: nothing is to be done.</summary>
    private Step Begin()
    {
        lock (this)
        {
            Debug.Assert(_stage == Stage.Running);
            Step step = _step = NextStepLocked;
            _stage = step == Step.Sleep ? Stage.Asleep : step == Step.Close ? Stage.Closing : Stage.Running;
            if (step == Step.Write)
            {
                _writtenBefore = _queue.Written;
                _request.Begin(FileRequestKind.Write, _file.Offset + _queue.Written);
                _queue.BeginWriteLocked(_request);
                Debug.Assert(_request.Length > 0 && _request.Length <= _queue.Flushed - _queue.Written);
                FilePipeMetrics.FlushesCoalesced.Add(Math.Max(0, _flushesInQueue - 1));
                _flushesInQueue = 0;
                _stepBegan = _writes.Begin(_file.Volume);
            }
            else if (step == Step.Sync)
            {
                Debug.Assert(Synced < _queue.Written);
                _request.Begin(FileRequestKind.Sync, offset: 0);
                _stepBegan = _writes.Begin(_file.Volume);
            }

            // Asleep: from here on the next thread may run.
            return step;
        }
    }

    /// <summary>
    /// Records the result of a write or a sync, frees the segments that are written, and completes the flushes that have reached their
    /// target. After a failure nothing more is written: it frees all flushed segments and completes all flushes. A canceled step has moved
    /// no bytes, and is repeated if it is still due. A caller's pool has its memory back before a flush completes.
    /// </summary>
    private void End()
    {
        _writes.End(_file.Volume, _stepBegan, _request.Length);
        _request.Clear();
        FileSegment? freed;
        Exception? error;
        int waiting;
        lock (this)
        {
            waiting = _flushes.Count;
            if (_request.Error is not null)
            {
                FailLocked(_request.Error);
            }
            else if (!_request.IsCanceled)
            {
                OnDoneLocked();
            }
            else if (!IsAborted)
            {
                Probe.Rare("a call of the writer is canceled without being asked for");
            }

            error = Error;
            Debug.Assert(Synced <= _queue.Written && _queue.Written <= _queue.Flushed && _queue.Flushed <= _queue.Advanced);
            _flushes.TakeReached(
                error is null ? _queue.Written : long.MaxValue, error is null ? Synced : long.MaxValue, _reached);
            freed = error is null ? _queue.TakeWrittenLocked() : _queue.DropFlushedLocked();
        }

        _ = SegmentPool.Shared.Return(freed);
        CompleteReached(error ?? (IsAborted ? AbortedException() : null));
        if (_step == Step.Sync && WaitingThreads.IsOneOfThem)
        {
            StayAwake(waiting);
        }
    }

    private void OnDoneLocked()
    {
        if (_step == Step.Sync)
        {
            // Nothing was written since the sync began. A flush that came meanwhile needs the next sync.
            Synced = _queue.Written;
        }
        else if (_request.Transferred == 0)
        {
            FailLocked(new IOException($"The system took none of {_request.Length} bytes and named no error : '{_file.Opened.Path}'"));
        }
        else
        {
            _queue.OnWrittenLocked(_request.Transferred);
            _file.OnWritten(_queue.Written);
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
    /// Keeps the loop on its waiting thread for a moment after a sync, until as many flushes as it has served are back, to share the next
    /// one.
    /// </summary>
    /// <param name="wanted">The number of pending flushes when the sync ended, those that it has served included.</param>
    private void StayAwake(int wanted)
    {
        long now = Stopwatch.GetTimestamp();
        long end = now + Math.Min((now - _stepBegan) / 2, s_awakeTicks);
        while (_flushes.Count < wanted && _queue.Flushed - _queue.Written < EnoughBytes && GoesOn && !IsCompleted
            && Stopwatch.GetTimestamp() < end)
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
            Debug.Assert(_stage == Stage.Closing);
            _flushes.TakeReached(long.MaxValue, long.MaxValue, _reached);
            freed = _queue.ReleaseAllLocked(IsAborted, out held);
            reason = Error;
        }

        _file.Opened.Return(_request);
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
            _stage = Stage.Closed;
            TellReleaseLocked();
        }
    }

    /// <summary>Gives the file its name, if it gets one, and closes it. Callers that wait for the release get the error.</summary>
    private void CloseFile()
    {
        // What this says does not change from the beginning of the closing on.
        bool takesName = _file.IsUnfinished && GoesOn && IsAllWritten && !_isGivenUp;
        Debug.Assert(!takesName || _options.FlushGuarantee != FlushGuarantee.Durable || Synced == _queue.Written);
        try
        {
            _file.Close(_queue.Written, takesName);
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
