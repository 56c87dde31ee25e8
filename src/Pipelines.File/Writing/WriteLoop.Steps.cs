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

    // The maximum duration of StayAwake, in Stopwatch ticks: 20 µs after a write, and 100 µs after a sync, in which dozens of
    // continuations run; half the duration of the sync is the other maximum.
    private static readonly long s_afterWriteTicks = Stopwatch.Frequency / 50_000;
    private static readonly long s_afterSyncTicks = Stopwatch.Frequency / 10_000;

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

    private bool IsDurable => options.FlushGuarantee == FlushGuarantee.Durable;

    private bool GoesOn => Error is null && !IsAborted;

    private bool IsAllWritten => queue.Written == queue.Flushed;

    // Whether closing gives the file its name. It does not change from the beginning of the closing on.
    private bool TakesName => file.IsUnfinished && GoesOn && IsAllWritten && !_isGivenUp;

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

            bool isLast = IsCompleted && IsAllWritten && IsDurable && !(_isGivenUp && file.IsUnfinished);
            return Synced < queue.Written && (isLast || flushes.WantsSync(queue.Written)) ? Step.Sync
                : IsCompleted ? Step.Close : Step.Sleep;
        }
    }

    /// <summary>
    /// Writes all, then syncs what waits for a sync, and sleeps. When the writer is completed: syncs, and closes the file, which gives it
    /// its name. The order keeps the file valid after a power failure: the bytes, a sync that covers them and the length, the name.
    /// </summary>
    protected override async Task RunAsync()
    {
        await SleepAsync();
        FileRequest request = _request = file.Opened.Rent();

        // A caller's memory pool gets its memory back after a write, and its code runs on the application's threads only.
        request.ResumesOnPool = options.Pool is not null;
        while (Begin(request) is var step and not Step.Close)
        {
            if (step == Step.Sleep)
            {
                await SleepAsync();
                continue;
            }

            await PerformAsync(request).WithoutBox();
            End(step, request);
        }

        // From here on Abort is too late.
        bool mayWait = _here != Here.All && file.MayWaitToClose(queue.Written);
        if (mayWait)
        {
            // This may be the thread of a caller of CompleteAsync, which must not wait.
            request.BeginStep(CloseFile);
            await file.Opened.RunAsync(request).WithoutBox();
        }

        Close(request, isFileClosed: mayWait);
    }

    /// <summary>Sets the request up for the next step, and returns it. <see cref="Step.Sleep"/>: nothing is to be done.</summary>
    private Step Begin(FileRequest request)
    {
        lock (this)
        {
            Debug.Assert(_request == request && !HasEndedLocked);
            Step step = NextStepLocked;
            _stage = step == Step.Sleep ? Stage.Asleep : step == Step.Close ? Stage.Closing : Stage.Running;
            switch (step)
            {
                case Step.Write:
                    Debug.Assert(queue.Written < queue.Flushed);
                    _writtenBefore = queue.Written;
                    request.Begin(FileRequestKind.Write, file.Offset + queue.Written);
                    queue.BeginWriteLocked(request);
                    Debug.Assert(request.Length > 0 && request.Length <= queue.Flushed - queue.Written);
                    FilePipeMetrics.FlushesCoalesced.Add(Math.Max(0, _flushesInQueue - 1));
                    _flushesInQueue = 0;
                    _stepBegan = writes.Begin(file.Volume);
                    break;
                case Step.Sync:
                    Debug.Assert(Synced < queue.Written);
                    _stepBegan = writes.Begin(file.Volume);
                    request.Begin(FileRequestKind.Sync, offset: 0);
                    break;
            }

            return step;
        }
    }

    private ValueTask PerformAsync(FileRequest request)
    {
        if ((_here == Here.All || (_here == Here.Writes && request.Kind == FileRequestKind.Write))
            && file.Opened.CanSeek && file.Opened.Try(request, mayWait: true))
        {
            return default;
        }

        _here = Here.None;
        return file.Opened.RunAsync(request);
    }

    /// <summary>
    /// Records the result of a step, frees the segments that are written, and completes the flushes that have reached their target. After a
    /// failure nothing more is written: it frees all flushed segments and completes all flushes. A canceled step has moved no bytes, and is
    /// repeated if it is still due. A caller's pool has its memory back before a flush completes.
    /// </summary>
    private void End(Step step, FileRequest request)
    {
        writes.End(file.Volume, _stepBegan, request.Length);
        request.Clear();
        FileSegment? freed;
        PendingResult<FlushResult>? reached;
        Exception? error;
        int waiting;
        lock (this)
        {
            waiting = flushes.Count;
            if (request.Error is not null)
            {
                FailLocked(request.Error);
            }
            else if (!request.IsCanceled)
            {
                OnDoneLocked(step, request);
            }
            else if (!IsAborted)
            {
                Probe.Rare("a call of the writer is canceled without being asked for");
            }

            error = Error;
            Debug.Assert(Synced <= queue.Written && queue.Written <= queue.Flushed && queue.Flushed <= queue.Advanced);
            reached = flushes.TakeReached(queue.Written, Synced, hasFailed: error is not null);
            freed = error is null ? queue.TakeWrittenLocked() : queue.DropFlushedLocked();
            error ??= IsAborted ? AbortedException() : null;
        }

        _ = SegmentPool.Shared.Return(freed);
        FlushWaiters.CompleteOnPool(reached, default, error);
        if (WaitingThreads.IsOneOfThem)
        {
            StayAwake(step, waiting);
        }
    }

    private void OnDoneLocked(Step step, FileRequest request)
    {
        if (step == Step.Sync)
        {
            // Nothing was written since the sync began. A flush that came meanwhile needs the next sync.
            Synced = queue.Written;
        }
        else if (request.Transferred == 0)
        {
            FailLocked(new IOException($"The system took none of {request.Length} bytes and named no error : '{file.Opened.Path}'"));
        }
        else
        {
            queue.OnWrittenLocked(request.Transferred);
            file.OnWritten(queue.Written);
        }
    }

    /// <summary>
    /// Keeps the loop on its waiting thread for a moment: the next bytes often come at once, and then nobody has to wake a thread. After a
    /// write that no flush has waited for until one does (one that has finds the loop asleep, and may write on its caller's thread); after
    /// a sync until as many flushes as it has served are back, to share the next one.
    /// </summary>
    /// <param name="step">The step that has ended.</param>
    /// <param name="waiting">The number of pending flushes when it ended, those that it has served included.</param>
    private void StayAwake(Step step, int waiting)
    {
        long now = Stopwatch.GetTimestamp();
        long end = now + (step == Step.Write ? waiting == 0 ? s_afterWriteTicks : 0
            : Math.Min((now - _stepBegan) / 2, s_afterSyncTicks));
        int wanted = step == Step.Write ? 1 : waiting;
        while (flushes.Count < wanted && queue.Flushed - queue.Written < EnoughBytes && GoesOn && !IsCompleted
            && Stopwatch.GetTimestamp() < end)
        {
            // It yields instead of spinning: a thread that is going to flush may be waiting for this very processor.
            Thread.Yield();
        }
    }

    /// <summary>Closes the file and releases the memory. This is the end of the loop.</summary>
    private void Close(FileRequest request, bool isFileClosed)
    {
        FileSegment? freed;
        PendingResult<FlushResult>? left;
        Exception? reason;
        lock (this)
        {
            Debug.Assert(_stage == Stage.Closing);
            _request = null;
            left = flushes.TakeAll();
            Debug.Assert(flushes.Count == 0);
            freed = queue.ReleaseAllLocked(_keepsRoom);
            reason = Error;
        }

        file.Opened.Return(request);
        if (!isFileClosed)
        {
            CloseFile();
        }

        Exception? poolError = SegmentPool.Shared.Return(freed);
        FlushWaiters.CompleteOnPool(left, default, reason ?? (left is null ? null : AbortedException()));

        lock (this)
        {
            FailLocked(poolError);
            _stage = Stage.Closed;
            EndReleaseLocked();
        }
    }

    /// <summary>Gives the file its name, if it gets one, and closes it. Callers that wait for the release get the error.</summary>
    private void CloseFile()
    {
        Debug.Assert(!TakesName || !IsDurable || Synced == queue.Written);
        try
        {
            file.Close(queue.Written, TakesName);
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
