using System.Diagnostics;
using System.Globalization;

namespace Pipelines.File.Waiting;

/// <summary>
/// The library's own threads, for calls that wait: they are started on demand, up to a limit, and end when they have been idle for some seconds. A call that finds no
/// thread waits in the queue of its kind. No caller's code runs on them.
/// </summary>
/// <remarks>
/// <para>Reads get few threads, since each takes what has come meanwhile without sleeping in between, and a thread that computes gains nothing from a second one beside
/// it; they get more only while calls stay in the queue although processors are idle, or nothing ends at all. Syncs and opens get a thread each. Every kind can have one
/// thread, whatever the others do.</para>
/// <para>Writes are mostly copied memory, and what a drain of large pieces needs is a thread that is awake: the application's pool, whose threads spin, helps with them, by a bounded
/// number of work items. What it does not take within moments, being busy or stopped by a device that stalls, the waiting threads do, as many as are of use.</para>
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

    /// <summary>How long a thread outlives its last call, milliseconds.</summary>
    private const int IdleMilliseconds = 5000;

    // Nothing deep runs there: system calls, and what reports them.
    private const int StackBytes = 256 * 1024;

    /// <summary>
    /// How long a thread that has performed a lone call stays awake for the next one, microseconds: a caller that makes one call after the other comes back this soon, and finds it awake.
    /// </summary>
    private const int SpinMicroseconds = 50;

    // Work items of the application's pool that write at the same time, at most: half of the threads that it has at the least. Windows may perform a write within the
    // call for as long as the device takes, and gets none.
    private static readonly int s_mostHelpers = OperatingSystem.IsWindows() ? 0 : Math.Max(1, Environment.ProcessorCount / 2);

    /// <summary>How long a work item of the application's pool performs calls before it goes behind the others' there, milliseconds: who waits for those calls is completed by the pool, too.</summary>
    private const int HelpMilliseconds = 1;

    private static readonly long s_helpTicks = HelpMilliseconds * Stopwatch.Frequency / 1000;

    private static readonly long s_spinTicks = SpinMicroseconds * Stopwatch.Frequency / 1_000_000;

    // On one processor the caller could not go on meanwhile.
    private static readonly bool s_maySpin = Environment.ProcessorCount > 1;

    private readonly int _limit;
    private readonly Action<IThreadPoolWorkItem> _queueOnPool;

    // Guards everything below, and every WaitingQueue; held for moments only.
    private readonly Lock _gate = new();
    private readonly WaitingQueue[] _queues;
    private readonly LoneCalls _loneCalls = new(s_spinTicks);
    private readonly PoolHelper[] _helpers;

    // The thread that became idle last is on top, as its caches are warm.
    private WaitingThread? _idle;
    private int _threads;

    // Threads that were woken or started, and have not looked at the queues since.
    private int _waking;

    // The idle thread that looks at the queues again soon, because calls wait behind others; null: none does.
    private WaitingThread? _lookout;
    private TimeSpan _lastCpu;
    private long _lastLook;
    private long _ended;
    private long _lastEnded;

    // How many calls were queued so far that the application's pool helps with, and how many when the lookout began to sleep.
    private int _helped;
    private int _helpedAtLook;

    // Interlocked: 1 while an idle thread spins.
    private int _isSpinning;

    // Interlocked.
    private int _lastNumber;

    /// <param name="limit">How many threads there are at the most.</param>
    /// <param name="queueOnPool">Has the application's pool execute it, behind what is queued there; other than that for tests.</param>
    internal WaitingThreads(int limit, Action<IThreadPoolWorkItem>? queueOnPool = null)
    {
        _queueOnPool = queueOnPool ?? (static item => ThreadPool.UnsafeQueueUserWorkItem(item, preferLocal: false));
        _limit = Math.Clamp(limit, LeastLimit, MostLimit);
        int few = Math.Clamp(Environment.ProcessorCount, 2, _limit);
        int fewHelped = s_mostHelpers > 0 ? 0 : few;
        _queues =
        [
            new(few, isForFew: true),
            new(fewHelped, isForFew: true, s_mostHelpers),
            new(fewHelped, isForFew: true, s_mostHelpers),
            new(_limit, isForFew: false),
            new(_limit, isForFew: false),
        ];
        Debug.Assert(_queues.Length == (int)WaitKind.Open + 1);
        _helpers = [.. _queues.Select(queue => new PoolHelper(this, queue))];
    }

    internal static WaitingThreads Shared { get; } = new(ConfiguredLimit());

    /// <summary>Threads there are. May be asked from any thread, as the two below.</summary>
    internal int ThreadCount => Volatile.Read(ref _threads);

    /// <summary>Calls that wait for a thread.</summary>
    internal int QueuedCount
    {
        get
        {
            lock (_gate)
            {
                return _queues.Sum(static queue => queue.Count);
            }
        }
    }

    /// <summary>Calls that a thread performs.</summary>
    internal int UnderWayCount
    {
        get
        {
            lock (_gate)
            {
                return _queues.Sum(static queue => queue.UnderWay + queue.Helping);
            }
        }
    }

    /// <summary>Has the call performed by one of the threads, in its turn. Never performs it on the caller's stack, and never waits.</summary>
    internal void Queue(IWaitingCall call)
    {
        WaitingThread? woken;
        bool starts;
        bool isHelpWanted = false;
        int kind = (int)call.WaitKind;
        WaitingQueue queue = _queues[kind];
        call.QueuedAt = Stopwatch.GetTimestamp();
        lock (_gate)
        {
            queue.Add(call);
            _loneCalls.OnQueued(call.QueuedAt, isHelped: queue.MostHelpers > 0);
            woken = FindHelp(out starts);
            if (queue.MostHelpers > 0)
            {
                _helped++;
                isHelpWanted = queue.Helpers < queue.MostHelpers;
                queue.Helpers += isHelpWanted ? 1 : 0;
            }
        }

        Help(woken, starts);
        if (isHelpWanted)
        {
            _queueOnPool(_helpers[kind]);
        }
    }

    private static int ConfiguredLimit()
    {
        string? text = AppContext.GetData(LimitSwitch)?.ToString() ?? Environment.GetEnvironmentVariable(LimitVariable);
        return int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out int limit) ? limit : DefaultLimit;
    }

    private void Help(WaitingThread? woken, bool starts)
    {
        woken?.Wake();
        if (starts)
        {
            Start();
        }
    }

    private void Start()
    {
        int number = Interlocked.Increment(ref _lastNumber);
        Thread thread = new(static threads => ((WaitingThreads)threads!).Run(), StackBytes)
        {
            IsBackground = true,
            Name = string.Create(CultureInfo.InvariantCulture, $"{ThreadName} {number % 100}"),
        };
        try
        {
            thread.UnsafeStart(this);
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            OnNoThread();
        }
    }

    /// <summary>The system has no further thread. The others go on with the queues; where there is none, the application's pool performs what is queued.</summary>
    private void OnNoThread()
    {
        List<IWaitingCall> left = [];
        lock (_gate)
        {
            _threads--;
            _waking--;
            if (_threads == 0)
            {
                foreach (WaitingQueue queue in _queues)
                {
                    while (queue.Count > 0)
                    {
                        left.Add(queue.Take());
                    }
                }
            }
        }

        foreach (IWaitingCall call in left)
        {
            ThreadPool.UnsafeQueueUserWorkItem(
                static call =>
                {
                    while (call.Perform())
                    {
                    }
                },
                call,
                preferLocal: false);
        }
    }

    private void Run()
    {
        WaitingThread thread = new();
        lock (_gate)
        {
            _waking--;
        }

        while (true)
        {
            WaitingQueue? queue;
            IWaitingCall? call = null;
            WaitingThread? woken = null;
            bool starts = false;
            int sleep = 0;
            bool spins = false;
            lock (_gate)
            {
                queue = FindWork();
                if (queue is not null)
                {
                    call = queue.Take();
                    queue.UnderWay++;
                    woken = FindHelp(out starts);
                }
                else
                {
                    sleep = BecomeIdle(thread);
                    spins = BeginsToBeIdle();
                }
            }

            if (call is not null)
            {
                Help(woken, starts);
                Perform(call, queue!);
            }
            else
            {
                if (spins)
                {
                    Spin(thread);
                }

                if (!Sleep(thread, sleep))
                {
                    return;
                }
            }
        }
    }

    /// <summary>
    /// Waits a moment for the next call without sleeping. One thread at a time does, and without yielding: Linux takes a whole slice of time from a thread that yields.
    /// </summary>
    private void Spin(WaitingThread thread)
    {
        if (Interlocked.Exchange(ref _isSpinning, 1) != 0)
        {
            return;
        }

        long end = Stopwatch.GetTimestamp() + s_spinTicks;
        while (!thread.IsWoken && Stopwatch.GetTimestamp() < end)
        {
            Thread.SpinWait(8);
        }

        Volatile.Write(ref _isSpinning, 0);
    }

    /// <summary>A work item of the application's pool: performs the calls of that queue, if there are any, and says whether it is to be queued again for more of them.</summary>
    private bool HelpFromPool(WaitingQueue queue)
    {
        long end = Stopwatch.GetTimestamp() + s_helpTicks;
        while (true)
        {
            IWaitingCall call;
            lock (_gate)
            {
                if (queue.Count == 0)
                {
                    queue.Helpers--;
                    return false;
                }

                if (Stopwatch.GetTimestamp() >= end)
                {
                    return true;
                }

                call = queue.Take();
                queue.Helping++;
            }

            bool again = PerformWhileAlone(call, queue, end);
            lock (_gate)
            {
                queue.Helping--;
                _ended++;
            }

            if (again)
            {
                Queue(call);
            }
        }
    }

    private void Perform(IWaitingCall call, WaitingQueue queue)
    {
        bool again = PerformWhileAlone(call, queue, end: long.MaxValue);
        lock (_gate)
        {
            queue.UnderWay--;
            _ended++;
            if (again && queue == _queues[(int)call.WaitKind])
            {
                // This thread takes it, or what is before it, at once.
                queue.Add(call);
                again = false;
            }
        }

        if (again)
        {
            Queue(call);
        }
    }

    /// <summary>Performs the call for as long as it has more of its kind to do, nobody else waits, and it is not too late. <see langword="true"/>: it has more to do.</summary>
    private bool PerformWhileAlone(IWaitingCall call, WaitingQueue queue, long end)
    {
        bool again;
        do
        {
            long queuedAt = call.QueuedAt;
            WaitKind kind = call.WaitKind;

            // Unless there is more to do the call may be queued again by now, and be another thread's.
            again = call.Perform();
            FilePipeMetrics.Waited(kind, queuedAt);
            if (again)
            {
                call.QueuedAt = Stopwatch.GetTimestamp();
            }
        }
        while (again && _queues[(int)call.WaitKind] == queue && queue.IsEmpty && (end == long.MaxValue || Stopwatch.GetTimestamp() < end));

        return again;
    }

    /// <summary>Sleeps as an idle thread. <see langword="false"/>: it was idle for so long that it ends.</summary>
    private bool Sleep(WaitingThread thread, int milliseconds)
    {
        if (thread.Sleep(milliseconds))
        {
            lock (_gate)
            {
                _waking--;
            }

            return true;
        }

        lock (_gate)
        {
            if (thread.IsIdle)
            {
                RemoveIdle(thread);
                if (_lookout == thread)
                {
                    _lookout = null;
                    Look();
                    return true;
                }

                _threads--;
                return false;
            }

            _waking--;
        }

        // It was taken from the idle ones just now, so that its wake-up is on its way.
        _ = thread.Sleep(Timeout.Infinite);
        return true;
    }

    // What follows is called under the lock.

    /// <summary>The queue whose oldest call may be taken and waits longest.</summary>
    private WaitingQueue? FindWork()
    {
        WaitingQueue? oldest = null;
        foreach (WaitingQueue queue in _queues)
        {
            if (queue.Count > 0 && RoomFor(queue) > 0 && (oldest is null || queue.OldestQueuedAt < oldest.OldestQueuedAt))
            {
                oldest = queue;
            }
        }

        return oldest;
    }

    /// <summary>How many more calls of that kind may be under way: every other kind has one thread left for it.</summary>
    private int RoomFor(WaitingQueue queue)
    {
        int room = _limit;
        foreach (WaitingQueue other in _queues)
        {
            room -= other == queue ? other.UnderWay : Math.Max(1, other.UnderWay);
        }

        return Math.Min(room, queue.Target - queue.UnderWay);
    }

    /// <summary>Whether further threads are wanted: gives an idle one that is to be woken, or says that one is to be started.</summary>
    private WaitingThread? FindHelp(out bool starts)
    {
        int wanted = 0;
        foreach (WaitingQueue queue in _queues)
        {
            if (queue.Count > 0)
            {
                // Few threads: one at a time, which wakes the next if there is still something to do when it comes.
                wanted += Math.Clamp(RoomFor(queue), 0, queue.IsForFew ? 1 : queue.Count);
            }
        }

        starts = false;
        if (wanted <= _waking && (wanted > 0 || _waking > 0 || !NeedsLookout()))
        {
            return null;
        }

        WaitingThread? idle = _idle;
        if (idle is not null)
        {
            RemoveIdle(idle);
            if (_lookout == idle)
            {
                _lookout = null;
            }

            _waking++;
        }
        else if (_threads < _limit)
        {
            _threads++;
            _waking++;
            starts = true;
        }

        return idle;
    }

    /// <summary>Whether calls wait behind others of their kind, more threads might serve them, and nobody looks after that.</summary>
    private bool NeedsLookout()
    {
        if (_lookout is not null)
        {
            return false;
        }

        foreach (WaitingQueue queue in _queues)
        {
            if (queue.Count > 0 && queue.Target < _limit)
            {
                return true;
            }
        }

        return false;
    }

    private void Look()
    {
        TimeSpan cpu = Environment.CpuUsage.TotalTime;
        long now = Stopwatch.GetTimestamp();
        bool hasProgress = _ended != _lastEnded;
        bool isComputing = hasProgress && (cpu - _lastCpu) > 0.9 * Environment.ProcessorCount * Stopwatch.GetElapsedTime(_lastLook, now);
        foreach (WaitingQueue queue in _queues)
        {
            queue.Look(now, hasProgress, isComputing, _limit);
        }
    }

    /// <summary>An idle thread asks whether it is to spin: all calls are over, and the next one is likely to come soon.</summary>
    private bool BeginsToBeIdle()
    {
        if (_waking > 0)
        {
            return false;
        }

        foreach (WaitingQueue queue in _queues)
        {
            if (queue.UnderWay > 0 || queue.Count > 0)
            {
                return false;
            }
        }

        return _loneCalls.OnAllOver(Stopwatch.GetTimestamp()) && s_maySpin;
    }

    /// <summary>How long to sleep, milliseconds.</summary>
    private int BecomeIdle(WaitingThread thread)
    {
        thread.IsIdle = true;
        thread.NextIdle = _idle;
        _idle = thread;
        if (!NeedsLookout() && (_lookout is not null || _helped == _helpedAtLook))
        {
            return IdleMilliseconds;
        }

        // Also while there are such calls now and then, so that none of them has to wake anybody for that.
        _lookout = thread;
        _helpedAtLook = _helped;
        _lastCpu = Environment.CpuUsage.TotalTime;
        _lastLook = Stopwatch.GetTimestamp();
        _lastEnded = _ended;
        return WaitingQueue.LookMilliseconds;
    }

    private void RemoveIdle(WaitingThread thread)
    {
        thread.IsIdle = false;
        if (_idle == thread)
        {
            _idle = thread.NextIdle;
        }
        else
        {
            WaitingThread before = _idle!;
            while (before.NextIdle != thread)
            {
                before = before.NextIdle!;
            }

            before.NextIdle = thread.NextIdle;
        }

        thread.NextIdle = null;
    }

    private sealed class PoolHelper(WaitingThreads threads, WaitingQueue queue) : IThreadPoolWorkItem
    {
        void IThreadPoolWorkItem.Execute()
        {
            if (threads.HelpFromPool(queue))
            {
                threads._queueOnPool(this);
            }
        }
    }
}
