namespace FilePipelines.Benchmarks;

/// <summary>
/// How long an unrelated work item waits for the thread pool while something else uses it: one after the other, a millisecond apart, from a
/// thread of its own. This is what blocked threads do to the rest of a program.
/// </summary>
internal sealed class ThreadPoolProbe : IDisposable
{
    private readonly Thread _thread;

    // No spinning: it gives its turn away by sched_yield(2), for which Linux 6.18 takes a whole slice of time from a thread, and this one
    // is to be there for the next work item.
    private readonly ManualResetEventSlim _ran = new(initialState: false, spinCount: 0);

    /// <summary>The most threads that the pool had at one of the work items.</summary>
    internal int MostPoolThreads { get; private set; }

    // Milliseconds; the thread's until it has ended.
    private readonly List<double> _delays = [];
    private volatile bool _isStopped;

    // When the work item ran, a Stopwatch timestamp. Written by the work item, before it sets the event, and read by the thread after that.
    private long _ranAt;

    internal ThreadPoolProbe()
    {
        _thread = new Thread(Run) { IsBackground = true, Name = "thread-pool probe" };
        _thread.Start();
    }

    /// <summary>Ends the probe and gives the delays, milliseconds, in ascending order; at least one.</summary>
    internal IReadOnlyList<double> Stop()
    {
        _isStopped = true;
        _thread.Join();
        _delays.Sort();
        return _delays;
    }

    public void Dispose()
    {
        Stop();
        _ran.Dispose();
    }

    private void Run()
    {
        do
        {
            _ran.Reset();
            long start = Stopwatch.GetTimestamp();
            ThreadPool.UnsafeQueueUserWorkItem(
                static probe =>
                {
                    probe._ranAt = Stopwatch.GetTimestamp();
                    probe._ran.Set();
                },
                this,
                preferLocal: false);
            _ran.Wait();
            _delays.Add(Stopwatch.GetElapsedTime(start, _ranAt).TotalMilliseconds);
            MostPoolThreads = Math.Max(MostPoolThreads, ThreadPool.ThreadCount);
            Thread.Sleep(1);
        }
        while (!_isStopped);
    }
}
