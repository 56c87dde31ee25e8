using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <summary>
/// The flushes of one writer that wait, oldest first, linked by <see cref="PendingResult{TResult}.Next"/>. The writer's lock guards all of
/// it. Whoever takes flushes out, under that lock, completes them afterwards without it.
/// </summary>
internal sealed class FlushWaiters
{
    private readonly PendingResultPool<FlushResult> _pool = new();
    private PendingResult<FlushResult>? _first;
    private PendingResult<FlushResult>? _last;
    private int _count;

    /// <summary>How many there are: by anybody, who may find a moment of a change.</summary>
    internal int Count => Volatile.Read(ref _count);

    /// <summary>Whether a flush waits for the device with no more than <paramref name="written"/> bytes.</summary>
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
    /// A flush that waits until <paramref name="target"/> bytes are written or, with <paramref name="waitsForSync"/>, on the device.
    /// </summary>
    internal PendingResult<FlushResult> Add(long target, bool waitsForSync, CancellationToken cancellationToken)
    {
        PendingResult<FlushResult> flush = Rent(cancellationToken);
        flush.Target = target;
        flush.WaitsForSync = waitsForSync;
        if (_last is null)
        {
            _first = flush;
        }
        else
        {
            _last.Next = flush;
        }

        _last = flush;
        _count++;
        return flush;
    }

    /// <summary>A wait that is not among the flushes.</summary>
    internal PendingResult<FlushResult> Rent(CancellationToken cancellationToken)
    {
        PendingResult<FlushResult> wait = _pool.Rent();
        wait.CancellationToken = cancellationToken;
        return wait;
    }

    /// <summary>Takes out those whose wait is over: all of them after a failure.</summary>
    internal PendingResult<FlushResult>? TakeReached(long written, long synced, bool hasFailed)
        => TakeWhere((written, synced, hasFailed),
            static (flush, reached) => reached.hasFailed || flush.Target <= (flush.WaitsForSync ? reached.synced : reached.written));

    internal PendingResult<FlushResult>? TakeCanceled(CancellationToken token)
        => TakeWhere(token, static (flush, token) => flush.CancellationToken == token);

    internal PendingResult<FlushResult>? TakeAll() => TakeWhere(true, static (_, _) => true);

    /// <summary>
    /// Completes flushes that were taken out, on a thread of a caller's. Where the awaiter of one throws instead of queueing its
    /// continuation, the others are completed all the same.
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

    /// <summary>Completes flushes that were taken out, on a thread of the library's: by work items.</summary>
    internal static void CompleteOnPool(PendingResult<FlushResult>? flushes, FlushResult result, Exception? error)
    {
        while (TakeFirst(ref flushes) is { } flush)
        {
            flush.CompleteOnPool(result, error);
        }
    }

    /// <summary>
    /// The first of a list, which ends at it from here on: once it is completed it may be waiting for another flush already.
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

    private PendingResult<FlushResult>? TakeWhere<TState>(TState state, Func<PendingResult<FlushResult>, TState, bool> isWanted)
    {
        PendingResult<FlushResult>? taken = null;
        ref PendingResult<FlushResult>? endOfTaken = ref taken;
        ref PendingResult<FlushResult>? next = ref _first;
        _last = null;
        while (next is { } flush)
        {
            if (isWanted(flush, state))
            {
                endOfTaken = TakeFirst(ref next);
                endOfTaken = ref flush.Next;
                _count--;
            }
            else
            {
                _last = flush;
                next = ref flush.Next;
            }
        }

        return taken;
    }
}
