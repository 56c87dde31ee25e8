using Pipelines.File.Diagnostics;

namespace Pipelines.File.Threading;

/// <summary>
/// The library's own threads, for the calls of one kind that wait. No caller's code runs on them. Each kind has threads of its own, so a
/// device or server that stalls holds up its own kind of call only.
/// </summary>
/// <remarks>
/// <para>A thread takes the call that has waited longest. The thread that became idle last is woken first; a thread that was idle for five
/// seconds ends.</para>
/// <para>Queueing a call wakes or starts a thread only if none is on its way; a thread that takes a call and sees another one waiting wakes
/// the next, so short calls share few threads, and calls that block get a thread each, up to the limit.</para>
/// <para>A call that a call of the same kind queues, above all its own next run, wakes no other thread: its thread looks for work next.
/// </para>
/// </remarks>
internal sealed class WaitingThreads : IThreadPoolWorkItem
{
    /// <summary>The prefix of the threads' names. A debugger shows the number behind it, too; Linux keeps 15 characters.</summary>
    internal const string ThreadName = "Pipelines.File";

    /// <summary>The AppContext value that sets the limit of each kind, a number; also in runtimeconfig.json.</summary>
    internal const string LimitSwitch = "Pipelines.File.WaitingThreads";

    /// <summary>The environment variable that sets the limit if the AppContext has no value.</summary>
    internal const string LimitVariable = "PIPELINES_FILE_WAITING_THREADS";

    private const int DefaultLimit = 64;
    private const int MostLimit = 1024;

    /// <summary>How long a thread stays idle before it ends, milliseconds.</summary>
    private const int IdleMilliseconds = 5000;

    // Only system calls and their completion run on it, so the stack is small.
    private const int StackBytes = 256 * 1024;

    // Set on a waiting thread: its owner.
    [ThreadStatic]
    private static WaitingThreads? s_current;

    private static int s_lastNumber;

    private readonly string _kind;
    private readonly FilePipeMetrics.Count _ended = new();
    private readonly int _limit;
    private readonly Action<Thread, object> _start;

    // Guards everything below. Held only briefly.
    private readonly Lock _gate = new();

    // The calls that wait for a thread, oldest first, and when each was queued, a Stopwatch timestamp.
    private readonly Queue<(IWaitingCall? Call, long QueuedAt)> _queued;

    // A stack, of what each idle thread waits for: the thread that became idle last is woken first, because its caches are warm.
    private readonly List<AutoResetEvent> _idle;

    // How many threads there are, idle ones included, without those of the pool.
    private int _count;

    // The calls that are being performed.
    private int _underWay;

    // Whether a thread was woken or started and has not looked at the queue since.
    private bool _isWaking;

    static WaitingThreads() => FilePipeMetrics.Waiting = static () => All.Select(
        static one => (one._kind, one._ended.Value, one.ThreadCount, one.QueuedCount, one.UnderWayCount));

    /// <param name="kind">The name of the calls' kind in the meter.</param>
    /// <param name="limit">The maximum number of threads; <see langword="null"/>: as the settings say.</param>
    /// <param name="start">Starts a thread; tests replace it.</param>
    internal WaitingThreads(string kind, int? limit = null, Action<Thread, object>? start = null)
    {
        string? text = AppContext.GetData(LimitSwitch)?.ToString() ?? Environment.GetEnvironmentVariable(LimitVariable);
        limit ??= int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out int set) ? set : DefaultLimit;
        _kind = kind;
        _limit = Math.Clamp(limit.Value, 1, MostLimit);
        _start = start ?? (static (thread, parameter) => thread.UnsafeStart(parameter));
        _idle = new List<AutoResetEvent>(_limit);
        _queued = new Queue<(IWaitingCall?, long)>(_limit);
    }

    /// <summary>For reads of bytes.</summary>
    internal static WaitingThreads Reads { get; } = new("read");

    /// <summary>For writes to the page cache, which mostly takes them at once, or to whoever else takes them.</summary>
    internal static WaitingThreads Writes { get; } = new("write");

    /// <summary>For what waits for the device: syncs, and the steps before and after them.</summary>
    internal static WaitingThreads Syncs { get; } = new("sync");

    /// <summary>For opening files, and for closing those that only readers had.</summary>
    internal static WaitingThreads Opens { get; } = new("open");

    /// <summary>For looks at what the names of followed files mean now.</summary>
    internal static WaitingThreads Looks { get; } = new("look");

    internal static IReadOnlyList<WaitingThreads> All { get; } = [Reads, Writes, Syncs, Opens, Looks];

    /// <summary>Those of which this thread is one; <see langword="null"/>: none.</summary>
    internal static WaitingThreads? Current => s_current;

    /// <summary>The number of threads. Any thread may read this and the next two; the values may be outdated.</summary>
    internal int ThreadCount => Volatile.Read(ref _count);

    /// <summary>The number of calls that wait for a thread.</summary>
    internal int QueuedCount => _queued.Count;

    /// <summary>The number of calls that are being performed.</summary>
    internal int UnderWayCount => Volatile.Read(ref _underWay);

    /// <summary>Has a waiting thread make the call. Its exception is the task's.</summary>
    internal Task<T> RunAsync<T>(Func<T> call)
    {
        WaitingCall<T> waiting = new(call);
        Queue(waiting);
        return waiting.Task;
    }

    /// <summary>Queues the call for a thread that may wait.</summary>
    internal void Queue(IWaitingCall call)
    {
        long now = Stopwatch.GetTimestamp();
        (bool IsDue, AutoResetEvent? Idle) thread;
        lock (_gate)
        {
            _queued.Enqueue((call, now));
            thread = s_current == this ? default : CallThreadLocked();
        }

        Wake(thread);
    }

    /// <summary>Performs calls on a thread of the pool, in place of one that could not be started, while there are any.</summary>
    void IThreadPoolWorkItem.Execute() => Run(woken: null);

    /// <summary>Whether another thread is to come, and the idle one to wake; <see langword="null"/>: a new one is to be started.</summary>
    private (bool IsDue, AutoResetEvent? Idle) CallThreadLocked()
    {
        Debug.Assert(_gate.IsHeldByCurrentThread);
        if (_isWaking || _queued.Count == 0 || (_idle.Count == 0 && _count == _limit))
        {
            return default;
        }

        _isWaking = true;
        if (_idle.Count == 0)
        {
            _count++;
            return (true, null);
        }

        AutoResetEvent idle = _idle[^1];
        _idle.RemoveAt(_idle.Count - 1);
        return (true, idle);
    }

    /// <summary>
    /// Wakes or starts the thread, if one is due. If the system cannot start it, a thread of the application's pool takes its place while
    /// there are calls.
    /// </summary>
    private void Wake((bool IsDue, AutoResetEvent? Idle) called)
    {
        if (!called.IsDue || called.Idle is not null)
        {
            called.Idle?.Set();
            return;
        }

        try
        {
            AutoResetEvent woken = new(initialState: false);
            Thread thread = new(woken => Run((AutoResetEvent)woken!), StackBytes)
            {
                IsBackground = true,
                Name = string.Create(CultureInfo.InvariantCulture, $"{ThreadName} {Interlocked.Increment(ref s_lastNumber)}"),
            };
            _start(thread, woken);
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            // The pool may be busy with callers that wait for these calls, so nobody counts on its thread.
            lock (_gate)
            {
                _isWaking = false;
                _count--;
                called = _idle.Count > 0 ? CallThreadLocked() : default;
            }

            Wake(called);
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        }
    }

    /// <param name="woken">Set once each time the thread was removed from the idle ones; <see langword="null"/> on one of the pool.</param>
    private void Run(AutoResetEvent? woken)
    {
        s_current = this;
        (IWaitingCall? Call, long QueuedAt) next = default;
        bool isWoken = woken is not null;
        do
        {
            (bool IsDue, AutoResetEvent? Idle) called = default;
            lock (_gate)
            {
                _isWaking &= !isWoken;
                isWoken = false;
                _underWay -= next.Call is null ? 0 : 1;
                if (_queued.TryDequeue(out next))
                {
                    _underWay++;
                    called = CallThreadLocked();
                }
                else if (woken is not null)
                {
                    _idle.Add(woken);
                }
            }

            Wake(called);
            if (next.Call is not null)
            {
                next.Call.Perform();
                FilePipeMetrics.Waited(_kind, _ended, next.QueuedAt);
            }
            else
            {
                isWoken = woken is not null && Sleep(woken);
            }
        }
        while (next.Call is not null || isWoken);
        s_current = null;
        woken?.Dispose();
    }

    /// <summary>Sleeps until the thread is woken. Returns <see langword="false"/> if it was idle so long that it ends.</summary>
    private bool Sleep(AutoResetEvent woken)
    {
        if (woken.WaitOne(IdleMilliseconds))
        {
            return true;
        }

        lock (_gate)
        {
            if (_idle.Remove(woken))
            {
                _count--;
                return false;
            }
        }

        // It was removed from the idle threads just now, so it will be woken.
        return woken.WaitOne();
    }
}
