using System.IO.Pipelines;
using System.Runtime.ExceptionServices;

namespace Pipelines.File;

/// <summary>
/// The flushes of one writer that wait, oldest first. The writer's lock guards all of it. Whoever takes flushes out, under that lock, completes them afterwards without it.
/// </summary>
/// <param name="counts">The writer.</param>
internal sealed class PendingFlushes(ICountsOwner counts)
{
    private readonly PooledCompletions<FlushResult> _completions = new(counts);
    private PooledCompletion<FlushResult>? _first;
    private PooledCompletion<FlushResult>? _last;

    /// <summary>Whether a flush waits for the device with no more than <paramref name="written"/> bytes.</summary>
    internal bool WantsSync(long written)
    {
        for (PooledCompletion<FlushResult>? flush = _first; flush is not null; flush = flush.Next)
        {
            if (flush.WaitsForSync && flush.Target <= written)
            {
                return true;
            }
        }

        return false;
    }

    /// <summary>A flush that waits until <paramref name="target"/> bytes are written or, with <paramref name="waitsForSync"/>, on the device.</summary>
    internal PooledCompletion<FlushResult> Add(long target, bool waitsForSync, CancellationToken cancellationToken)
    {
        PooledCompletion<FlushResult> flush = _completions.Rent();
        flush.CancellationToken = cancellationToken;
        flush.Target = target;
        flush.WaitsForSync = waitsForSync;
        Append(flush);
        return flush;
    }

    /// <summary>Takes out those whose wait is over: all of them after a failure.</summary>
    internal PooledCompletion<FlushResult>? TakeReached(long written, long synced, bool hasFailed)
        => _first is null ? null : TakeWhere((written, synced, hasFailed), static (flush, reached) => reached.hasFailed || flush.Target <= (flush.WaitsForSync ? reached.synced : reached.written));

    internal PooledCompletion<FlushResult>? TakeCanceled(CancellationToken token) => TakeWhere(token, static (flush, token) => flush.CancellationToken == token);

    internal PooledCompletion<FlushResult>? TakeAll()
    {
        PooledCompletion<FlushResult>? all = _first;
        _first = _last = null;
        return all;
    }

    /// <summary>
    /// Completes flushes that were taken out, on a thread of a caller's (at once) or of a back end (by work items). Where the awaiter of one throws instead of queueing its
    /// continuation, the others are completed all the same.
    /// </summary>
    internal static void Complete(PooledCompletion<FlushResult>? flushes, FlushResult result, Exception? error, bool now)
    {
        ExceptionDispatchInfo? thrown = null;
        while (flushes is { } flush)
        {
            // Once it is completed it may be waiting for another flush already.
            flushes = flush.Next;
            flush.Next = null;
            if (now)
            {
                try
                {
                    flush.CompleteNow(result, error);
                }
                catch (Exception e)
                {
                    thrown ??= ExceptionDispatchInfo.Capture(e);
                }
            }
            else
            {
                flush.CompleteOnPool(result, error);
            }
        }

        thrown?.Throw();
    }

    private PooledCompletion<FlushResult>? TakeWhere<TState>(TState state, Func<PooledCompletion<FlushResult>, TState, bool> isWanted)
    {
        PooledCompletion<FlushResult>? taken = null;
        PooledCompletion<FlushResult>? lastTaken = null;
        PooledCompletion<FlushResult>? next = TakeAll();
        while (next is { } flush)
        {
            next = flush.Next;
            flush.Next = null;
            if (!isWanted(flush, state))
            {
                Append(flush);
            }
            else if (lastTaken is null)
            {
                taken = lastTaken = flush;
            }
            else
            {
                lastTaken.Next = flush;
                lastTaken = flush;
            }
        }

        return taken;
    }

    private void Append(PooledCompletion<FlushResult> flush)
    {
        if (_last is null)
        {
            _first = flush;
        }
        else
        {
            _last.Next = flush;
        }

        _last = flush;
    }
}
