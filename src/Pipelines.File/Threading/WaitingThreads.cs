using Pipelines.File.Diagnostics;

namespace Pipelines.File.Threading;

/// <summary>The library's own threads, for calls that wait. No caller's code runs on them.</summary>
/// <remarks>
/// <para>A thread takes the call that has waited longest; the thread that became idle last is woken first, and one that has been idle for
/// some seconds ends.</para>
/// <para>Whoever queues a call wakes or starts a thread only if none is on its way. A thread that takes a call and sees another one waiting
/// wakes the next, so that calls which are over in microseconds are taken by few threads, and calls that block get one each, up to the
/// limit.</para>
/// <para>Of the limit a share is kept for each <see cref="WaitKind"/>: a device that stalls holds up its own kind of call only.</para>
/// <para>A plain write is a work item of the application's pool, whose threads are awake, while fewer than half as many as there are
/// processors are there and the pool is not busy.</para>
/// <para>What a call queues in its turn, its own next run above all, is performed by the same thread unless others have waited for
/// longer.</para>
/// </remarks>
internal sealed class WaitingThreads
{
    /// <summary>The names of the threads begin with it; at most the 15 characters that Linux keeps.</summary>
    internal const string ThreadName = "File waiting";

    /// <summary>The limit as an AppContext value, a number, also in runtimeconfig.json.</summary>
    internal const string LimitSwitch = "Pipelines.File.WaitingThreads";

    /// <summary>The limit in the environment, which counts where the AppContext says nothing.</summary>
    internal const string LimitVariable = "PIPELINES_FILE_WAITING_THREADS";

    private const int DefaultLimit = 64;
    private const int LeastLimit = 5;
    private const int MostLimit = 1024;

    /// <summary>Of the limit, the part that is kept for each kind: at least one thread.</summary>
    private const int KeptPart = 16;

    /// <summary>How long a thread outlives its last call, milliseconds.</summary>
    private const int IdleMilliseconds = 5000;

    // Nothing deep runs there: system calls, and what reports them.
    private const int StackBytes = 256 * 1024;

    // Half of the threads that the application's pool has at the least. Windows may perform a write within the call for as long as the
    // device takes, and gets none.
    private static readonly int s_poolWriters = OperatingSystem.IsWindows() ? 0 : Math.Max(1, Environment.ProcessorCount / 2);

    // The thread of some WaitingThreads that this is.
    [ThreadStatic]
    private static (WaitingThreads Threads, WaitingThread Thread) s_current;

    private readonly int _limit;
    private readonly int _kept;
    private readonly Action<Thread, object> _start;

    // Guards everything below; held for moments only.
    private readonly Lock _gate = new();

    // By WaitKind.
    private readonly WaitingShare[] _shares;

    // The one that became idle last is on top, as its caches are warm.
    private readonly List<WaitingThread> _idle = [];

    // All, and those that are not in use.
    private readonly PoolWriter[] _allPoolWriters = new PoolWriter[s_poolWriters];
    private readonly Stack<PoolWriter> _poolWriters = new();
    private int _blocked;
    private int _threads;

    // Threads that were woken or started, and have not looked at the queue since.
    private int _waking;
    private int _lastNumber;

    /// <param name="limit">How many threads there are at the most.</param>
    /// <param name="start">Starts a thread; other than the system's for tests.</param>
    internal WaitingThreads(int limit, Action<Thread, object>? start = null)
    {
        // What completions need is loaded with the first thread: later there may be no descriptor left for it.
        RuntimeHelpers.RunClassConstructor(typeof(CompletionQueue).TypeHandle);
        _start = start ?? (static (thread, parameter) => thread.UnsafeStart(parameter));
        _limit = Math.Clamp(limit, LeastLimit, MostLimit);
        _kept = Math.Max(1, _limit / KeptPart);
        _shares = [new(), new(), new(), new(), new()];
        Debug.Assert(_shares.Length == (int)WaitKind.Look + 1);
        for (int i = 0; i < s_poolWriters; i++)
        {
            _poolWriters.Push(_allPoolWriters[i] = new PoolWriter(this));
        }
    }

    internal static WaitingThreads Shared { get; } = new(ConfiguredLimit());

    /// <summary>Threads there are. May be asked from any thread, as the two below, and be outdated.</summary>
    internal int ThreadCount => Volatile.Read(ref _threads);

    /// <summary>Calls that wait for a thread.</summary>
    internal int QueuedCount => _shares.Sum(static share => share.Queued.Count);

    /// <summary>Calls that a thread performs, the application's pool included.</summary>
    internal int UnderWayCount => _shares.Sum(static share => share.UnderWay) + s_poolWriters - _poolWriters.Count;

    /// <summary>
    /// Has the call performed by a thread that may wait, in its turn. Never performs it on the caller's stack, and never waits.
    /// </summary>
    internal void Queue(IWaitingCall call)
    {
        call.QueuedAt = Stopwatch.GetTimestamp();
        if (s_current is (var threads, { Next: null } current) && threads == this)
        {
            current.Next = call;
            return;
        }

        WaitingThread? called;
        if (call.WaitKind == WaitKind.Write && TryPerformOnPool(call))
        {
            return;
        }

        lock (_gate)
        {
            ShareOf(call).Queued.Enqueue(call);
            called = CallThreadLocked();
        }

        Wake(called);
    }

    /// <summary>
    /// A caller is about to wait for calls, and may be, or hold up, every thread of the application's pool. So what is queued there is
    /// performed by these threads, until
    /// <see cref="EndBlocking"/>.
    /// </summary>
    internal void BeginBlocking()
    {
        lock (_gate)
        {
            _blocked++;
        }

        foreach (PoolWriter writer in _allPoolWriters)
        {
            if (writer.TryTake() is { } call)
            {
                Queue(call);
            }
        }
    }

    internal void EndBlocking()
    {
        lock (_gate)
        {
            _blocked--;
        }
    }

    /// <summary>Performs the call on this thread, which may wait.</summary>
    internal static void Perform(IWaitingCall call)
    {
        // The call may be queued again, and be another thread's, before it returns.
        long queuedAt = call.QueuedAt;
        WaitKind kind = call.WaitKind;
        call.Perform();
        FilePipeMetrics.Waited(kind, queuedAt);
    }

    /// <summary>Takes back a work item that has nothing more to do.</summary>
    internal void Free(PoolWriter writer)
    {
        lock (_gate)
        {
            _poolWriters.Push(writer);
        }
    }

    private static int ConfiguredLimit()
    {
        string? text = AppContext.GetData(LimitSwitch)?.ToString() ?? Environment.GetEnvironmentVariable(LimitVariable);
        return int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out int limit) ? limit : DefaultLimit;
    }

    /// <summary>
    /// Whether every thread that the pool has at once is in use, but for that of a caller who waits for the call next: what is queued there
    /// then waits for whatever they do.
    /// </summary>
    private static bool IsPoolBusyFor(IWaitingCall call)
    {
        ThreadPool.GetMaxThreads(out int most, out _);
        ThreadPool.GetAvailableThreads(out int available, out _);
        ThreadPool.GetMinThreads(out int least, out _);
        int inUse = most - available - (call.IsAwaited && Thread.CurrentThread.IsThreadPoolThread ? 1 : 0);
        return inUse >= least;
    }

    private bool TryPerformOnPool(IWaitingCall call)
    {
        if (PoolWriter.TryGoOn(this, call))
        {
            return true;
        }

        PoolWriter? writer = null;
        if (!IsPoolBusyFor(call))
        {
            lock (_gate)
            {
                if (_blocked == 0 && _poolWriters.TryPop(out writer))
                {
                    writer.Set(call);
                }
            }
        }

        writer?.Queue();
        return writer is not null;
    }

    /// <summary>Wakes the thread, or starts it.</summary>
    private void Wake(WaitingThread? called)
    {
        if (called is null || called.IsStarted)
        {
            called?.Wake();
            return;
        }

        called.IsStarted = true;
        int number = Interlocked.Increment(ref _lastNumber);
        Thread thread = new(called => Run((WaitingThread)called!), StackBytes)
        {
            IsBackground = true,
            Name = string.Create(CultureInfo.InvariantCulture, $"{ThreadName} {number % 100}"),
        };
        try
        {
            _start(thread, called);
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            OnNoThread();
        }
    }

    /// <summary>
    /// The system has no further thread. The others go on with the queue; where there is none, the application's pool performs what is
    /// queued.
    /// </summary>
    private void OnNoThread()
    {
        List<IWaitingCall> left = [];
        WaitingThread? called;
        lock (_gate)
        {
            _threads--;
            _waking--;

            // What was queued meanwhile has woken nobody, as this thread was on its way.
            called = _idle.Count > 0 ? CallThreadLocked() : null;
            foreach (WaitingShare share in _shares)
            {
                while (_threads == 0 && share.Queued.TryDequeue(out IWaitingCall? call))
                {
                    left.Add(call);
                }
            }
        }

        called?.Wake();
        foreach (IWaitingCall call in left)
        {
            ThreadPool.UnsafeQueueUserWorkItem(Perform, call, preferLocal: false);
        }
    }

    private void Run(WaitingThread thread)
    {
        s_current = (this, thread);
        WaitingShare? share = null;
        bool isWoken = true;
        while (true)
        {
            IWaitingCall? call;
            WaitingThread? called = null;
            lock (_gate)
            {
                _waking -= isWoken ? 1 : 0;
                isWoken = false;
                call = TakeLocked(thread, ref share);
                if (call is not null)
                {
                    called = CallThreadLocked();
                }
                else
                {
                    _idle.Add(thread);
                }
            }

            Wake(called);
            if (call is not null)
            {
                Perform(call);
            }
            else if (Sleep(thread))
            {
                isWoken = true;
            }
            else
            {
                return;
            }
        }
    }

    /// <summary>Sleeps as an idle thread. <see langword="false"/>: it was idle for so long that it ends.</summary>
    private bool Sleep(WaitingThread thread)
    {
        if (thread.Sleep(IdleMilliseconds))
        {
            return true;
        }

        lock (_gate)
        {
            if (_idle.Remove(thread))
            {
                _threads--;
                return false;
            }
        }

        // It was taken from the idle ones just now, so that its wake-up is on its way.
        return thread.Sleep(Timeout.Infinite);
    }

    private WaitingShare ShareOf(IWaitingCall call) => _shares[(int)call.WaitKind];

    /// <summary>
    /// A thread has performed a call of that share, if any, and takes the next one; <see langword="null"/>: there is nothing to do.
    /// </summary>
    private IWaitingCall? TakeLocked(WaitingThread thread, ref WaitingShare? share)
    {
        Debug.Assert(_gate.IsHeldByCurrentThread);
        if (share is not null)
        {
            share.UnderWay--;
        }

        if (thread.Next is { } next)
        {
            thread.Next = null;
            share = ShareOf(next);
            if (share.Queued.Count == 0 && RoomLocked(share) > 0)
            {
                share.UnderWay++;
                return next;
            }

            share.Queued.Enqueue(next);
        }

        share = FindWorkLocked();
        if (share is null)
        {
            return null;
        }

        share.UnderWay++;
        return share.Queued.Dequeue();
    }

    /// <summary>The share whose oldest call may be performed and has waited longest.</summary>
    private WaitingShare? FindWorkLocked()
    {
        WaitingShare? oldest = null;
        foreach (WaitingShare share in _shares)
        {
            if (share.Queued.TryPeek(out IWaitingCall? call) && RoomLocked(share) > 0
                && (oldest is null || call.QueuedAt < oldest.Queued.Peek().QueuedAt))
            {
                oldest = share;
            }
        }

        return oldest;
    }

    /// <summary>How many more calls of that share may be performed at once, beside those of the others and what is kept for them.</summary>
    private int RoomLocked(WaitingShare share)
    {
        int room = _limit - share.UnderWay;
        foreach (WaitingShare other in _shares)
        {
            room -= other == share ? 0 : Math.Max(_kept, other.UnderWay);
        }

        return room;
    }

    /// <summary>Whether one more thread is wanted: an idle one that is to be woken, or one that is to be started.</summary>
    private WaitingThread? CallThreadLocked()
    {
        Debug.Assert(_gate.IsHeldByCurrentThread);
        if (_waking > 0 || FindWorkLocked() is null || (_idle.Count == 0 && _threads == _limit))
        {
            return null;
        }

        _waking++;
        if (_idle.Count == 0)
        {
            _threads++;
            return new WaitingThread();
        }

        WaitingThread idle = _idle[^1];
        _idle.RemoveAt(_idle.Count - 1);
        return idle;
    }

    /// <summary>One thread: where it sleeps while there is nothing to do, and what it performs next.</summary>
    private sealed class WaitingThread
    {
        // Guarded by this object.
        private bool _isWoken;

        internal bool IsStarted { get; set; }

        /// <summary>What was queued by the call that this thread performs. Owned by the thread.</summary>
        internal IWaitingCall? Next { get; set; }

        /// <summary>Called once each time that the thread was taken from the idle ones.</summary>
        internal void Wake()
        {
            lock (this)
            {
                _isWoken = true;
                Monitor.Pulse(this);
            }
        }

        /// <summary>Sleeps until <see cref="Wake"/>. Returns <see langword="false"/> if it has not come within that time.</summary>
        internal bool Sleep(int milliseconds)
        {
            lock (this)
            {
                if (!_isWoken)
                {
                    Monitor.Wait(this, milliseconds);
                }

                bool isWoken = _isWoken;
                _isWoken = false;
                return isWoken;
            }
        }
    }

    /// <summary>The calls of one <see cref="WaitKind"/>.</summary>
    private sealed class WaitingShare
    {
        /// <summary>Those that wait for a thread, oldest first.</summary>
        internal Queue<IWaitingCall> Queued { get; } = new();

        /// <summary>How many have one.</summary>
        internal int UnderWay { get; set; }
    }
}
