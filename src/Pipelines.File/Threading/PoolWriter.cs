namespace Pipelines.File.Threading;

/// <summary>
/// A work item of the application's pool that performs plain writes, which are mostly copied memory. <see cref="WaitingThreads"/> has a few
/// of them, and uses them again and again.
/// </summary>
internal sealed class PoolWriter(WaitingThreads threads) : IThreadPoolWorkItem
{
    // How long it goes on before it takes its turn behind the pool's other work items: 1 ms. Who waits for these writes is completed by the
    // pool, too.
    private static readonly long s_turnTicks = Stopwatch.Frequency / 1000;

    [ThreadStatic]
    private static PoolWriter? s_current;

    private readonly WaitingThreads _threads = threads;

    // Written by whoever has taken this from the free ones. Whoever takes it out performs it.
    private IWaitingCall? _call;

    /// <summary>Has the pool perform the call when <see cref="Queue"/> has come.</summary>
    internal void Set(IWaitingCall call) => Volatile.Write(ref _call, call);

    internal void Queue() => ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);

    /// <summary>The call that is not begun yet, for another to perform.</summary>
    internal IWaitingCall? TryTake() => Interlocked.Exchange(ref _call, null);

    /// <summary>Whether the current thread performs a write of those threads as such a work item, and goes on with this one.</summary>
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
