using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <content>The loop and its steps: each is set up under the lock where it is due, and what came of it is recorded under the
/// lock.</content>
internal sealed partial class WriteLoop
{
    /// <summary>
    /// Bytes that one write to most files takes at most: <see cref="OpenedFile.BytesPerWrite"/>. Chosen by measurement: docs/tuning.md.
    /// </summary>
    internal const int BytesPerWrite = 512 * 1024;

    /// <summary>Syncs without <see cref="Gather"/> between two tries, where nobody comes back.</summary>
    private const int MostSkipped = 63;

    // The longest Gather, in ticks: 100 µs, in which dozens of continuations run. Never longer than half of the sync before.
    private static readonly long s_mostGathering = Stopwatch.Frequency / 10_000;

    // The step that is under way, or else the one that was made last; None where that was canceled.
    private Step _step;

    // A file that the writer has made is on the device when its folder is, too: that is synced once, behind the file's first sync.
    private bool _isFolderUnsynced = file.Opened.IsNew;

    // How much was written when the last write began, bytes, and how many flushes were handed over since then.
    private long _writtenBefore;
    private int _flushesInQueue;

    // When the last sync began, how many of the next ones no Gather follows, and how many those were at first.
    private long _syncBegan;
    private int _syncsToSkip;
    private int _lastSkip;

    private enum Step
    {
        None,
        Write,
        Trim,
        Sync,
        SyncFolder,
        TakeName,
        Close,
        Closed,
    }

    private bool IsDurable => options.FlushGuarantee == FlushGuarantee.Durable;

    private bool GoesOn => Error is null && !IsAborted;

    private bool IsAllWritten => queue.Written == queue.Flushed;

    // A flush that waits for the device lets one more write go first, which other flushes may share its sync by, and is not put off for as
    // long as others write on.
    private bool Writes => !IsAllWritten && !flushes.WantsSync(_writtenBefore);

    private bool Syncs => Synced < queue.Written
        && (flushes.WantsSync(queue.Written) || (IsDurable && HasAll && !(_isGivenUp && file.IsUnfinished)));

    private bool HasAll => IsCompleted && IsAllWritten;

    private bool IsWhole => HasAll && !_isGivenUp;

    // In the order that a power failure asks for. The folder is synced along with the file's first sync, before more is written.
    private Step NextStep
        => GoesOn && _step == Step.Sync && _isFolderUnsynced ? Step.SyncFolder
            : GoesOn && Writes ? Step.Write
            : GoesOn && IsWhole && (IsDurable || file.IsUnfinished) && file.HasRoomBehind(queue.Written) ? Step.Trim
            : GoesOn && Syncs ? Step.Sync
            : GoesOn && IsWhole && file.IsUnfinished && _step != Step.TakeName ? Step.TakeName
            : IsCompleted ? Step.Close
            : Step.None;

    /// <summary>
    /// The loop, in the order that a power failure asks for: the bytes, the length, a sync that covers both, the folder of a new file, the
    /// name. What each step waits for is in
    /// <see cref="NextStep"/>, as more bytes may come, and the writer may be completed, at any moment.
    /// </summary>
    protected override async Task RunAsync()
    {
        FileRequest request = _request = file.Opened.Rent();

        // The code of a caller's memory pool, which gets its memory back after a write, runs on the application's threads only.
        request.ResumesOnPool = options.Pool is not null;
        try
        {
            while (Begin(request) is var step and not Step.Close)
            {
                if (step == Step.None)
                {
                    await SleepAsync();
                }
                else
                {
                    await PerformAsync(request).WithoutBox();
                    End(step, request);
                }
            }

            if (!_performsHere && file.MayWaitToClose(queue.Written))
            {
                // The loop may be on the thread of a caller of CompleteAsync.
                request.BeginStep(static () => { });
                await file.Opened.RunAsync(request).WithoutBox();
            }
        }
        catch (Exception e)
        {
            // No step throws but for a lack of memory, and even then nobody waits in vain.
            lock (this)
            {
                FailLocked(e);
            }
        }

        Close(request);
    }

    /// <summary>Sets the request up for the next step. <see cref="Step.None"/>: the loop sleeps.</summary>
    private Step Begin(FileRequest request)
    {
        lock (this)
        {
            Step step = NextStep;
            _isRunning = step != Step.None;
            _step = step;
            switch (step)
            {
                case Step.Write:
                    _writtenBefore = queue.Written;
                    request.Begin(FileRequestKind.Write, file.Offset + queue.Written);

                    // What follows the last write is performed by the thread that has written.
                    request.NeedsOwnThread = flushes.WantsSync(long.MaxValue) || (IsCompleted && (IsDurable || file.IsUnfinished))
                        || !file.Opened.CanSeek;
                    queue.BeginWriteLocked(request);
                    FilePipeMetrics.FlushesCoalesced.Add(Math.Max(0, _flushesInQueue - 1));
                    _flushesInQueue = 0;
                    break;
                case Step.Trim:
                    request.BeginStep(() => file.Trim(queue.Written));
                    break;
                case Step.Sync:
                    _syncBegan = Stopwatch.GetTimestamp();
                    request.Begin(FileRequestKind.Sync, offset: 0);
                    break;
                case Step.SyncFolder:
                    request.BeginStep(file.Opened.SyncFolder);
                    break;
                case Step.TakeName:
                    request.BeginStep(file.TakeName);
                    break;
            }

            return step;
        }
    }

    private ValueTask PerformAsync(FileRequest request)
    {
        // Segments are pinned already, and so is borrowed memory of one piece; several pieces are arrays of the library's own.
        request.Pin();
        if (_performsHere && file.Opened.TryPerform(request, mayWait: true))
        {
            return default;
        }

        _performsHere = false;
        return file.Opened.RunAsync(request);
    }

    /// <summary>
    /// Records what came of a step, frees what is written and completes the flushes that it has reached: all of them after a failure, which
    /// frees the rest, too. A step that has failed ends the loop's work; one that was canceled has moved nothing, and is made again if it
    /// is still wanted. A caller's pool has its memory back before a flush completes.
    /// </summary>
    private void End(Step step, FileRequest request)
    {
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
            else if (request.IsCanceled)
            {
                _step = Step.None;
            }
            else
            {
                OnDoneLocked(step, request);
            }

            error = Error;
            reached = TakeBorrowWaitLocked(flushes.TakeReached(queue.Written, Synced, hasFailed: error is not null));
            freed = error is null ? queue.TakeWrittenLocked() : queue.DropFlushedLocked();
        }

        _ = SegmentPool.Shared.Return(freed);
        FlushWaiters.CompleteOnPool(reached, default, error);
        if (step == Step.Sync)
        {
            Gather(waiting);
        }
    }

    private void OnDoneLocked(Step step, FileRequest request)
    {
        switch (step)
        {
            case Step.Write when request.Transferred == 0:
                FailLocked(new IOException($"The system took none of {request.Length} bytes and named no error : '{file.Opened.Path}'"));
                break;
            case Step.Write:
                queue.OnWrittenLocked(request.Transferred);
                file.OnWritten(queue.Written);
                break;
            case Step.Trim:
                Synced = -1;
                break;
            case Step.Sync or Step.SyncFolder:
                // Nothing was written meanwhile: a flush that came while this one ran needs the next.
                _isFolderUnsynced &= step == Step.Sync;
                Synced = _isFolderUnsynced ? Synced : queue.Written;
                break;
        }
    }

    /// <summary>Ends the loan of borrowed memory that the queue needs no more: whoever waits for it comes before <paramref name="others"/>.
    /// No call is under way.</summary>
    private PendingResult<FlushResult>? TakeBorrowWaitLocked(PendingResult<FlushResult>? others)
    {
        if (_borrowWait is not { } wait || (GoesOn && !IsAllWritten && _revoked is null))
        {
            return others;
        }

        (FlushResult Result, OperationCanceledException? Error)? ended = IsAborted ? (default, FilePipeWriter.AbortedException())
            : _revoked;
        queue.EndBorrowingLocked();
        _borrowWait = null;
        _revoked = null;
        if (Error is null && ended is { } end)
        {
            wait.CompleteOnPool(end.Result, end.Error);
            return others;
        }

        wait.Next = others;
        return wait;
    }

    /// <summary>
    /// Who was served by a sync is likely to flush again at once. For a moment the loop stays on its thread for them, so that all share the
    /// next sync, and none has to wake a thread for it.
    /// </summary>
    /// <param name="waiting">How many waited for this sync or the next when it ended.</param>
    private void Gather(int waiting)
    {
        if (_syncsToSkip > 0)
        {
            _syncsToSkip--;
            return;
        }

        int served = waiting - flushes.Count;
        long now = Stopwatch.GetTimestamp();
        long end = now + Math.Min((now - _syncBegan) / 2, s_mostGathering);
        while (flushes.Count < waiting && GoesOn && !IsCompleted && Stopwatch.GetTimestamp() < end)
        {
            // Not by spinning: whoever is to flush may be on its way to this very processor.
            Thread.Yield();
        }

        // Where less than half of them come back it is tried again ever more rarely.
        _lastSkip = (waiting - flushes.Count) * 2 <= served ? 0 : Math.Min((_lastSkip * 2) + 1, MostSkipped);
        _syncsToSkip = _lastSkip;
    }

    /// <summary>Closes the file and gives the memory back: the end of the loop.</summary>
    private void Close(FileRequest request)
    {
        FileSegment? freed;
        PendingResult<FlushResult>? left;
        Exception? reason;
        lock (this)
        {
            _step = Step.Close;
            _request = null;
            left = TakeBorrowWaitLocked(flushes.TakeAll());
            freed = queue.ReleaseAllLocked(_keepsRoom);
            reason = Error;
        }

        request.Return();
        Exception? error;
        try
        {
            error = file.Close(queue.Written);
        }
        catch (Exception e)
        {
            // Whatever it is, whoever waits for the end hears of it.
            error = e;
        }

        Exception? poolError = SegmentPool.Shared.Return(freed);
        if (left is not null)
        {
            FlushWaiters.CompleteOnPool(left, default, reason ?? FilePipeWriter.AbortedException());
        }

        lock (this)
        {
            FailLocked(error ?? poolError);
            _step = Step.Closed;
            EndReleaseLocked();
        }
    }
}
