using Pipelines.File.Diagnostics;

namespace Pipelines.File.Threading;

/// <summary>The library's own threads, for calls that wait. No caller's code runs on them.</summary>
/// <remarks>
/// <para>A thread takes the call that has waited longest. The thread that became idle last is woken first; a thread that was idle for five
/// seconds ends.</para>
/// <para>Queueing a call wakes or starts a thread only if none is on its way; a thread that takes a call and sees another one waiting wakes
/// the next, so short calls share few threads, and calls that block get a thread each, up to the limit.</para>
/// <para>Each <see cref="WaitKind"/> has a reserved share of the limit, so a device that stalls holds up its own kind of call only.</para>
/// <para>A call that a call queues, above all its own next run, wakes no other thread: its thread looks for work next.</para>
/// </remarks>
internal sealed class WaitingThreads
{
    /// <summary>The prefix of the threads' names. A debugger shows the number behind it, too; Linux keeps 15 characters.</summary>
    internal const string ThreadName = "Pipelines.File";

    /// <summary>The AppContext value that sets the limit, a number; also in runtimeconfig.json.</summary>
    internal const string LimitSwitch = "Pipelines.File.WaitingThreads";

    /// <summary>The environment variable that sets the limit if the AppContext has no value.</summary>
    internal const string LimitVariable = "PIPELINES_FILE_WAITING_THREADS";

    private const int DefaultLimit = 64;
    private const int LeastLimit = 5;
    private const int MostLimit = 1024;

    /// <summary>The reserved share of each kind is the limit divided by this; at least one thread.</summary>
    private const int KeptPart = 16;

    /// <summary>How long a thread stays idle before it ends, milliseconds.</summary>
    private const int IdleMilliseconds = 5000;

    // Only system calls and their completion run on it, so the stack is small.
    private const int StackBytes = 256 * 1024;

    // By WaitKind: its name in the meter, and the calls that have ended.
    private static readonly string[] s_kinds = ["read", "write", "sync", "open", "look"];
    private static readonly FilePipeMetrics.Count[] s_counts = Array.ConvertAll(s_kinds, FilePipeMetrics.WaitsOf);

    // Set on a waiting thread: its owner.
    [ThreadStatic]
    private static WaitingThreads? s_current;

    private readonly int _limit;
    private readonly int _kept;
    private readonly Action<Thread, object> _start;

    // Guards everything below. Held only briefly.
    private readonly Lock _gate = new();

    // By WaitKind.
    private readonly WaitingShare[] _shares;

    // A stack: the thread that became idle last is woken first, because its caches are warm.
    private readonly List<WaitingThread> _idle;

    // How many there are, idle ones included, without those of the pool.
    private int _count;

    // Threads that were woken or started and have not looked at the queues since, without those of the pool.
    private int _waking;
    private int _lastNumber;

    /// <param name="limit">The maximum number of threads.</param>
    /// <param name="start">Starts a thread; tests replace it.</param>
    internal WaitingThreads(int limit, Action<Thread, object>? start = null)
    {
        _start = start ?? (static (thread, parameter) => thread.UnsafeStart(parameter));
        _limit = Math.Clamp(limit, LeastLimit, MostLimit);
        _idle = new List<WaitingThread>(_limit);
        _kept = Math.Max(1, _limit / KeptPart);
        _shares = [new(_limit), new(_limit), new(_limit), new(_limit), new(_limit)];
        Debug.Assert(_shares.Length == (int)WaitKind.Look + 1);
    }

    internal static WaitingThreads Shared { get; } = MakeShared();

    internal static bool IsOneOfThem => s_current is not null;

    /// <summary>The number of threads. Any thread may read this and the next two; the values may be outdated.</summary>
    internal int ThreadCount => Volatile.Read(ref _count);

    /// <summary>The number of calls that wait for a thread.</summary>
    internal int QueuedCount => _shares.Sum(static share => share.Queued.Count);

    /// <summary>The number of calls that are being performed.</summary>
    internal int UnderWayCount => _shares.Sum(static share => share.UnderWay);

    /// <summary>Queues the call for a thread that may wait.</summary>
    internal void Queue(IWaitingCall call)
    {
        long now = Stopwatch.GetTimestamp();
        WaitingThread? called;
        lock (_gate)
        {
            _shares[(int)call.WaitKind].Queued.Enqueue((call, now));
            called = s_current == this ? null : CallThreadLocked();
        }

        Wake(called);
    }

    /// <summary>Performs the call on the current thread, which may block.</summary>
    private static void Perform(IWaitingCall call, long queuedAt)
    {
        // Read before: when Perform returns, the call may be queued again, and belong to another thread.
        WaitKind kind = call.WaitKind;
        call.Perform();
        FilePipeMetrics.Waited(s_kinds[(int)kind], s_counts[(int)kind], queuedAt);
    }

    private static WaitingThreads MakeShared()
    {
        string? text = AppContext.GetData(LimitSwitch)?.ToString() ?? Environment.GetEnvironmentVariable(LimitVariable);
        WaitingThreads shared = new(
            int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out int limit) ? limit : DefaultLimit);
        FilePipeMetrics.Observe("pipelines.file.waiting.threads", () => shared.ThreadCount);
        FilePipeMetrics.Observe("pipelines.file.waiting.queued", () => shared.QueuedCount);
        FilePipeMetrics.Observe("pipelines.file.waiting.under_way", () => shared.UnderWayCount);
        return shared;
    }

    /// <summary>
    /// Wakes or starts the thread, if any. If the system cannot start it, a thread of the application's pool takes its place while there
    /// are calls.
    /// </summary>
    private void Wake(WaitingThread? called)
    {
        if (called is null or { Runs: true })
        {
            called?.Woken.Set();
            return;
        }

        // Nobody else has it until it runs.
        called.Runs = true;
        try
        {
            Thread thread = new(static called => ((WaitingThread)called!).Execute(), StackBytes)
            {
                IsBackground = true,
                Name = string.Create(CultureInfo.InvariantCulture, $"{ThreadName} {Interlocked.Increment(ref _lastNumber)}"),
            };
            _start(thread, called);
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            // The pool may be busy with callers that wait for these calls, so nobody counts on its thread.
            WaitingThread? idle;
            lock (_gate)
            {
                _waking--;
                _count--;
                idle = _idle.Count > 0 ? CallThreadLocked() : null;
            }

            Wake(idle);
            ThreadPool.UnsafeQueueUserWorkItem(called, preferLocal: false);
        }
    }

    private void Run(WaitingThread thread)
    {
        s_current = this;
        WaitingShare? share = null;
        bool isOfPool = Thread.CurrentThread.IsThreadPoolThread;
        bool isWoken = !isOfPool;
        while (true)
        {
            (IWaitingCall? Call, long QueuedAt) next = default;
            WaitingThread? called = null;
            lock (_gate)
            {
                _waking -= isWoken ? 1 : 0;
                isWoken = false;
                if (share is not null)
                {
                    share.UnderWay--;
                }

                share = FindWorkLocked();
                if (share is not null)
                {
                    share.UnderWay++;
                    next = share.Queued.Dequeue();
                    called = CallThreadLocked();
                }
                else if (!isOfPool)
                {
                    _idle.Add(thread);
                }
            }

            Wake(called);
            if (next.Call is { } call)
            {
                Perform(call, next.QueuedAt);
            }
            else if (!isOfPool && Sleep(thread))
            {
                isWoken = true;
            }
            else
            {
                s_current = null;
                thread.Woken.Dispose();
                return;
            }
        }
    }

    /// <summary>Sleeps until the thread is woken. Returns <see langword="false"/> if it was idle so long that it ends.</summary>
    private bool Sleep(WaitingThread thread)
    {
        if (thread.Woken.WaitOne(IdleMilliseconds))
        {
            return true;
        }

        lock (_gate)
        {
            if (_idle.Remove(thread))
            {
                _count--;
                return false;
            }
        }

        // It was removed from the idle threads just now, so it will be woken.
        return thread.Woken.WaitOne();
    }

    /// <summary>Returns the share whose oldest call has waited longest, of those that have room.</summary>
    private WaitingShare? FindWorkLocked()
    {
        WaitingShare? oldest = null;
        foreach (WaitingShare share in _shares)
        {
            if (share.Queued.TryPeek(out (IWaitingCall, long QueuedAt) first) && RoomLocked(share) > 0
                && (oldest is null || first.QueuedAt < oldest.Queued.Peek().QueuedAt))
            {
                oldest = share;
            }
        }

        return oldest;
    }

    /// <summary>
    /// How many more calls of that share may run at once. The calls of the other shares, or their reserves if those are larger, count
    /// against the limit.
    /// </summary>
    private int RoomLocked(WaitingShare share)
    {
        int room = _limit - share.UnderWay;
        foreach (WaitingShare other in _shares)
        {
            room -= other == share ? 0 : Math.Max(_kept, other.UnderWay);
        }

        return room;
    }

    /// <summary>
    /// Returns the idle thread to wake or the new one to start, or <see langword="null"/> if no further one is needed or possible.
    /// </summary>
    private WaitingThread? CallThreadLocked()
    {
        Debug.Assert(_gate.IsHeldByCurrentThread);
        if (_waking > 0 || FindWorkLocked() is null || (_idle.Count == 0 && _count == _limit))
        {
            return null;
        }

        WaitingThread thread;
        if (_idle.Count > 0)
        {
            thread = _idle[^1];
            _idle.RemoveAt(_idle.Count - 1);
        }
        else
        {
            try
            {
                thread = new WaitingThread(this);
                _count++;
            }
            catch (OutOfMemoryException)
            {
                // Whoever queues or takes the next call tries again. The thread here may be one of these, and an exception end the process.
                return null;
            }
        }

        _waking++;
        return thread;
    }

    /// <summary>A thread, or one of the application's pool in its place.</summary>
    private sealed class WaitingThread(WaitingThreads threads) : IThreadPoolWorkItem
    {
        /// <summary>Whether it was started. Set by whoever has called it.</summary>
        internal bool Runs { get; set; }

        /// <summary>Set once each time the thread was removed from the idle ones.</summary>
        internal AutoResetEvent Woken { get; } = new(initialState: false);

        public void Execute() => threads.Run(this);
    }

    /// <summary>The calls of one <see cref="WaitKind"/>.</summary>
    /// <param name="capacity">How many calls can wait before the queue has to grow, which allocates.</param>
    private sealed class WaitingShare(int capacity)
    {
        /// <summary>
        /// The calls that wait for a thread, oldest first, and when each was queued, a <see cref="Stopwatch"/> timestamp.
        /// </summary>
        internal Queue<(IWaitingCall Call, long QueuedAt)> Queued { get; } = new(capacity);

        /// <summary>The number of calls that are being performed.</summary>
        internal int UnderWay { get; set; }
    }
}
