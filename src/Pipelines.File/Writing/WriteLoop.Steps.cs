using System.Diagnostics;
using System.IO.Pipelines;
using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <content>The steps of <see cref="RunAsync"/>: each is set up under the lock where it is due, and what came of it is recorded under the lock.</content>
internal sealed partial class WriteLoop
{
    private bool TryBeginWrite(FileRequest request)
    {
        PendingResult<FlushResult>? lender;
        bool begins;
        lock (this)
        {
            lender = TakeLenderLocked(null);
            begins = Writes;
            if (begins)
            {
                _writtenBefore = queue.Written;
                request.Begin(FileRequestKind.Write, file.Offset + queue.Written);

                // What follows the last write is performed by the thread that has written.
                request.NeedsOwnThread = flushes.WantsSync(long.MaxValue) || _trims || _syncs || _takesName || !file.Opened.CanSeek;
                queue.BeginWriteLocked(request, file.Opened.BytesPerWrite, LentBytesPerWrite);
                _coalesced = Math.Max(0, _flushesInQueue - 1);
                _flushesInQueue = 0;
            }
        }

        FlushWaiters.CompleteOnPool(lender, default, null);
        if (begins)
        {
            // Segments are pinned already, and lent memory of one piece is, too; pieces are arrays of the library's own.
            request.Pin();
        }

        return begins;
    }

    private void EndWrite(FileRequest request)
    {
        request.Clear();
        FileSegment? freed = null;
        lock (this)
        {
            FilePipeMetrics.FlushesCoalesced(_coalesced);
            _coalesced = 0;
            if (HasSucceededLocked(request) && request.Transferred > 0)
            {
                freed = queue.OnWrittenLocked(request.Transferred);
                file.OnWritten(queue.Written);
            }
            else if (request is { Error: null, IsCanceled: false })
            {
                FailLocked(new IOException($"The system took none of {request.Length} bytes and named no error : '{file.Opened.Path}'"));
            }
        }

        Settle(freed);
    }

    private bool TryBeginTrim(FileRequest request)
    {
        lock (this)
        {
            return Trims && BeginStep(request, () => file.Trim(queue.Written));
        }
    }

    private void EndTrim(FileRequest request)
    {
        lock (this)
        {
            if (HasSucceededLocked(request))
            {
                _trims = false;
                Synced = -1;
            }
        }

        Settle(null);
    }

    private bool TryBeginSync(FileRequest request)
    {
        lock (this)
        {
            if (!Syncs)
            {
                return false;
            }

            // Only what is written by now is covered: a flush that comes while this one runs needs the next.
            _syncing = queue.Written;
            _syncBegan = Stopwatch.GetTimestamp();
            request.Begin(FileRequestKind.Sync, offset: 0);
            return true;
        }
    }

    private void EndSync(FileRequest request)
    {
        int waiting;
        lock (this)
        {
            waiting = flushes.Count;
            if (HasSucceededLocked(request))
            {
                _syncsFolder = _isFolderUnsynced;
                Synced = _isFolderUnsynced ? Synced : _syncing;
            }
        }

        Settle(null);
        Gather(waiting);
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

    private bool TryBeginFolderSync(FileRequest request)
    {
        lock (this)
        {
            return SyncsFolder && BeginStep(request, file.Opened.SyncFolder);
        }
    }

    private void EndFolderSync(FileRequest request)
    {
        lock (this)
        {
            if (HasSucceededLocked(request))
            {
                _syncsFolder = _isFolderUnsynced = false;
                Synced = _syncing;
            }
        }

        Settle(null);
    }

    private bool TryBeginName(FileRequest request)
    {
        lock (this)
        {
            _isTooLateToAbort |= TakesName;
            return TakesName && BeginStep(request, file.TakeName);
        }
    }

    private void EndName(FileRequest request)
    {
        lock (this)
        {
            _takesName &= !HasSucceededLocked(request);
        }

        Settle(null);
    }

    private static bool BeginStep(FileRequest request, Action step)
    {
        request.BeginStep(step);
        return true;
    }

    /// <summary>Whether the call has done what it was to do; its error is the writer's. One that was canceled has moved nothing, and is made again if it is still wanted.</summary>
    private bool HasSucceededLocked(FileRequest request)
    {
        Debug.Assert(Monitor.IsEntered(this));
        if (request.Error is not null)
        {
            FailLocked(request.Error);
        }

        return request is { Error: null, IsCanceled: false };
    }
}
