using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <content>The steps of <see cref="RunAsync"/>: each is set up under the lock where it is due, and what came of it is recorded under the lock.</content>
internal sealed partial class WriteLoop
{
    private enum Step
    {
        None,
        Write,
        Trim,
        Sync,
        SyncFolder,
        TakeName,
    }

    // In the order that a power failure asks for. The folder is synced along with the file's first sync, before more is written.
    private Step NextStep
        => !GoesOn ? Step.None
            : _syncsFolder ? Step.SyncFolder
            : Writes ? Step.Write
            : _trims && IsAllWritten ? Step.Trim
            : Syncs ? Step.Sync
            : TakesName ? Step.TakeName
            : Step.None;

    /// <summary>Sets the request up for the next step; <see cref="Step.None"/>: nothing is due.</summary>
    private Step Begin(FileRequest request)
    {
        PendingResult<FlushResult>? lender;
        Step step;
        lock (this)
        {
            lender = TakeLenderLocked(null);
            step = NextStep;
            switch (step)
            {
                case Step.Write:
                    BeginWriteLocked(request);
                    break;
                case Step.Trim:
                    request.BeginStep(() => file.Trim(queue.Written));
                    break;
                case Step.Sync:
                    // Only what is written by now is covered: a flush that comes while this one runs needs the next.
                    _syncing = queue.Written;
                    _syncBegan = Stopwatch.GetTimestamp();
                    request.Begin(FileRequestKind.Sync, offset: 0);
                    break;
                case Step.SyncFolder:
                    request.BeginStep(file.Opened.SyncFolder);
                    break;
                case Step.TakeName:
                    _isTooLateToAbort = true;
                    request.BeginStep(file.TakeName);
                    break;
            }
        }

        FlushWaiters.CompleteOnPool(lender, default, null);
        if (step == Step.Write)
        {
            // Segments are pinned already, and lent memory of one piece is, too; pieces are arrays of the library's own.
            request.Pin();
        }

        return step;
    }

    private void BeginWriteLocked(FileRequest request)
    {
        _writtenBefore = queue.Written;
        request.Begin(FileRequestKind.Write, file.Offset + queue.Written);

        // What follows the last write is performed by the thread that has written.
        request.NeedsOwnThread = flushes.WantsSync(long.MaxValue) || _trims || _syncs || _takesName || !file.Opened.CanSeek;
        queue.BeginWriteLocked(request, file.Opened.BytesPerWrite, LentBytesPerWrite);
        _coalesced = Math.Max(0, _flushesInQueue - 1);
        _flushesInQueue = 0;
    }

    /// <summary>Records what came of a step. One that has failed ends the loop's work; one that was canceled has moved nothing, and is made again if it is still wanted.</summary>
    private void End(Step step, FileRequest request)
    {
        request.Clear();
        FileSegment? freed = null;
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
                freed = OnDoneLocked(step, request);
            }
        }

        Settle(freed);
        if (step == Step.Sync)
        {
            Gather(waiting);
        }
    }

    private FileSegment? OnDoneLocked(Step step, FileRequest request)
    {
        switch (step)
        {
            case Step.Write when request.Transferred == 0:
                FailLocked(new IOException($"The system took none of {request.Length} bytes and named no error : '{file.Opened.Path}'"));
                break;
            case Step.Write:
                FilePipeMetrics.FlushesCoalesced(_coalesced);
                FileSegment? freed = queue.OnWrittenLocked(request.Transferred);
                file.OnWritten(queue.Written);
                return freed;
            case Step.Trim:
                _trims = false;
                Synced = -1;
                break;
            case Step.Sync when _isFolderUnsynced:
                _syncsFolder = true;
                break;
            case Step.Sync or Step.SyncFolder:
                _syncsFolder = _isFolderUnsynced = false;
                Synced = _syncing;
                break;
            case Step.TakeName:
                _takesName = false;
                break;
        }

        return null;
    }

    /// <summary>
    /// Who was served by a sync is likely to flush again at once. For a moment the loop stays on its thread for them, so that all share the next sync, and none has to wake a thread for it.
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
}
