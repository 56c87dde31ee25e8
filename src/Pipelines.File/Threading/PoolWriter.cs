namespace Pipelines.File.Threading;

/// <summary>
/// A work item of the application's pool that performs plain writes, which mostly copy memory. <see cref="WaitingThreads"/> owns a few and
/// reuses them. Without them writing with a flush every 2 KiB takes 1.3 times as long (benchmarks, pairs --suite write).
/// </summary>
internal sealed class PoolWriter(WaitingThreads threads) : IThreadPoolWorkItem
{
    // The time, Stopwatch ticks, after which it queues the next write instead of performing it: 1 ms. Flushes that wait for these writes
    // complete on the pool, too, and need their turn.
    private static readonly long s_turnTicks = Stopwatch.Frequency / 1000;

    [ThreadStatic]
    private static PoolWriter? s_current;

    private readonly WaitingThreads _threads = threads;

    // Interlocked: the call to perform. Set by the thread that has taken this object from the free ones, or that runs it; whoever exchanges
    // it for null performs it.
    private IWaitingCall? _call;

    /// <summary>Sets the call. The pool performs it when this work item is queued.</summary>
    internal void Set(IWaitingCall call) => Volatile.Write(ref _call, call);

    /// <summary>Takes the call if it has not begun; the caller performs it.</summary>
    internal IWaitingCall? TryTake() => Interlocked.Exchange(ref _call, null);

    /// <summary>
    /// If the current thread runs such a work item of <paramref name="threads"/>, with no next call yet, makes it perform this call next.
    /// </summary>
    internal static bool TryGoOn(WaitingThreads threads, IWaitingCall call)
    {
        if (s_current is not { _call: null } current || current._threads != threads)
        {
            return false;
        }

        current.Set(call);
        return true;
    }

    void IThreadPoolWorkItem.Execute()
    {
        long end = Stopwatch.GetTimestamp() + s_turnTicks;
        s_current = this;
        while (TryTake() is { } call)
        {
            WaitingThreads.Perform(call);
            if (Stopwatch.GetTimestamp() >= end)
            {
                break;
            }
        }

        s_current = null;
        IWaitingCall? left = TryTake();
        _threads.Free(this);
        if (left is not null)
        {
            _threads.Queue(left);
        }
    }
}
