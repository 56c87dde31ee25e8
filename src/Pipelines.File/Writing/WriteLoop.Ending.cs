using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <content>What follows a step: memory is given back, flushes that it has reached complete, and in the end the file is closed.</content>
internal sealed partial class WriteLoop
{
    /// <summary>
    /// Frees what is written and completes the flushes that it has reached: all of them after a failure, which frees the rest, too. A caller's pool has its memory back before a flush
    /// completes.
    /// </summary>
    private void Settle(FileSegment? freed)
    {
        PendingResult<FlushResult>? reached;
        Exception? error;
        bool givesBack;
        lock (this)
        {
            error = Error;
            reached = TakeLenderLocked(flushes.TakeReached(queue.Written, Synced, hasFailed: error is not null));
            if (error is not null)
            {
                freed = Concat(queue.DropFlushedLocked(), freed);
            }

            givesBack = hasCallersPool && freed is not null;
            if (givesBack)
            {
                _freed = Concat(freed, _freed);
                ref FlushList list = ref error is null ? ref _reached : ref _failed;
                list.Add(reached);
                Monitor.PulseAll(this);
            }
        }

        if (givesBack)
        {
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        }
        else
        {
            _ = SegmentPool.Shared.Return(freed);
            FlushWaiters.CompleteOnPool(reached, default, error);
        }
    }

    /// <summary>Puts the lender before the other waits where the queue needs the lent memory no more. No call is under way.</summary>
    private PendingResult<FlushResult>? TakeLenderLocked(PendingResult<FlushResult>? others)
    {
        if (_lender is not { } lender || !(IsAllWritten || _isCalledBack || !GoesOn))
        {
            return others;
        }

        queue.EndLoanLocked();
        _lender = null;
        if (Error is null && (IsAborted || _isCalledBack))
        {
            (FlushResult result, Exception? error) = IsAborted ? (default, FilePipeWriter.AbortedException()) : _calledBack;
            lender.CompleteOnPool(result, error);
            lender = others;
        }
        else
        {
            lender.Next = others;
        }

        _isCalledBack = false;
        _calledBack = default;
        return lender;
    }

    private void FailAll(Exception error)
    {
        lock (this)
        {
            FailLocked(error);
        }

        Settle(null);
    }

    /// <summary>Closes the file and gives the memory back: the end of the loop.</summary>
    private void Close(FileRequest request)
    {
        FileSegment? freed;
        PendingResult<FlushResult>? left;
        lock (this)
        {
            _isTooLateToAbort = true;
            _request = null;
            left = TakeLenderLocked(flushes.TakeAll());
            freed = queue.ReleaseAllLocked(_keepsRoom || IsAborted);
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

        if (left is not null)
        {
            FlushWaiters.CompleteOnPool(left, default, Error ?? FilePipeWriter.AbortedException());
        }

        lock (this)
        {
            if (error is not null)
            {
                FailLocked(error);
            }

            _isClosed = true;
            _freed = hasCallersPool ? Concat(freed, _freed) : _freed;
            OnReleasedLocked();
        }

        if (hasCallersPool)
        {
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        }
        else
        {
            _ = SegmentPool.Shared.Return(freed);
        }
    }

    /// <summary>Runs the code of a caller's pool: in a work item, or on the thread of whoever waits for the end.</summary>
    private void GiveBack()
    {
        FileSegment? segments;
        PendingResult<FlushResult>? reached;
        PendingResult<FlushResult>? failed;
        lock (this)
        {
            segments = _freed;
            reached = _reached.TakeAll();
            failed = _failed.TakeAll();
            _freed = null;
            _givingBack += segments is null ? 0 : 1;
        }

        if (segments is null)
        {
            return;
        }

        Exception? error = SegmentPool.Shared.Return(segments);
        FlushWaiters.CompleteOnPool(reached, default, null);
        FlushWaiters.CompleteOnPool(failed, default, Error);
        lock (this)
        {
            _givingBack--;
            if (error is not null && _isClosed)
            {
                // Before, it concerns nobody who waits: the bytes are written.
                FailLocked(error);
            }

            OnReleasedLocked();
        }
    }

    private void OnReleasedLocked()
    {
        Monitor.PulseAll(this);
        if (IsReleased || IsGivenUp)
        {
            _released?.TrySetResult();
        }
    }

    private static FileSegment? Concat(FileSegment? first, FileSegment? second)
    {
        if (first is null)
        {
            return second;
        }

        FileSegment last = first;
        while (last.NextSegment is { } next)
        {
            last = next;
        }

        last.NextSegment = second;
        return first;
    }
}
