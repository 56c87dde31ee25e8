using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <summary>
/// The pending flushes of one writer, oldest first, linked by <see cref="PendingResult{TResult}.Next"/>. The writer's lock guards all of
/// it. Whoever takes flushes out, under that lock, completes them afterwards without it.
/// </summary>
internal sealed class FlushWaiters
{
    private PendingResult<FlushResult>? _first;
    private PendingResult<FlushResult>? _last;
    private int _count;

    /// <summary>The number of pending flushes. A racy hint, readable without the lock.</summary>
    internal int Count => Volatile.Read(ref _count);

    /// <summary>Whether a flush waits for a sync of no more than the first <paramref name="written"/> bytes.</summary>
    internal bool WantsSync(long written)
    {
        for (PendingResult<FlushResult>? flush = _first; flush is not null; flush = flush.Next)
        {
            if (flush.WaitsForSync && flush.Target <= written)
            {
                return true;
            }
        }

        return false;
    }

    /// <summary>
    /// Adds a flush that waits until <paramref name="target"/> bytes are written or, with <paramref name="waitsForSync"/>, on the device.
    /// </summary>
    internal PendingResult<FlushResult> Add(long target, bool waitsForSync, CancellationToken cancellationToken)
    {
        PendingResult<FlushResult> flush = PendingResult<FlushResult>.Rent(cancellationToken);
        Debug.Assert(flush.Next is null && (_first is null) == (_last is null) && (_count == 0) == (_first is null));
        flush.Target = target;
        flush.WaitsForSync = waitsForSync;
        Append(ref _first, ref _last, flush);
        _count++;
        return flush;
    }

    /// <summary>Takes out the flushes that have reached their target; all of them after a failure.</summary>
    internal PendingResult<FlushResult>? TakeReached(long written, long synced, bool hasFailed)
        => TakeWhere((written, synced, hasFailed),
            static (flush, reached) => reached.hasFailed || flush.Target <= (flush.WaitsForSync ? reached.synced : reached.written));

    internal PendingResult<FlushResult>? TakeCanceled(CancellationToken token)
        => TakeWhere(token, static (flush, token) => flush.CancellationToken == token);

    internal PendingResult<FlushResult>? TakeAll() => TakeWhere(true, static (_, _) => true);

    /// <summary>
    /// Completes flushes that were taken out. Called on a thread of the application. If an awaiter throws instead of queueing its
    /// continuation, the others are completed all the same; then the first of these exceptions is thrown.
    /// </summary>
    internal static void CompleteNow(PendingResult<FlushResult>? flushes, FlushResult result, Exception? error)
    {
        ExceptionDispatchInfo? thrown = null;
        while (TakeFirst(ref flushes) is { } flush)
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

        thrown?.Throw();
    }

    /// <summary>Completes flushes that were taken out, by work items. Called on a thread of the library.</summary>
    internal static void CompleteOnPool(PendingResult<FlushResult>? flushes, FlushResult result, Exception? error)
    {
        while (TakeFirst(ref flushes) is { } flush)
        {
            flush.CompleteOnPool(result, error);
        }
    }

    /// <summary>
    /// Unlinks the first flush of a list. Its link must be free before it is completed, because the object may then wait for another flush
    /// at once.
    /// </summary>
    private static PendingResult<FlushResult>? TakeFirst(ref PendingResult<FlushResult>? flushes)
    {
        PendingResult<FlushResult>? first = flushes;
        if (first is not null)
        {
            flushes = first.Next;
            first.Next = null;
        }

        return first;
    }

    private static void Append(ref PendingResult<FlushResult>? first, ref PendingResult<FlushResult>? last,
        PendingResult<FlushResult> flush)
    {
        if (last is null)
        {
            first = flush;
        }
        else
        {
            last.Next = flush;
        }

        last = flush;
    }

    private PendingResult<FlushResult>? TakeWhere<TState>(TState state, Func<PendingResult<FlushResult>, TState, bool> isWanted)
    {
        PendingResult<FlushResult>? all = _first;
        PendingResult<FlushResult>? taken = null;
        PendingResult<FlushResult>? lastTaken = null;
        _first = _last = null;
        while (TakeFirst(ref all) is { } flush)
        {
            if (isWanted(flush, state))
            {
                Append(ref taken, ref lastTaken, flush);
                _count--;
            }
            else
            {
                Append(ref _first, ref _last, flush);
            }
        }

        Debug.Assert((_count == 0) == (_first is null));
        return taken;
    }
}
