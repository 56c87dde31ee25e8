using Pipelines.File.Threading;

namespace FilePipelines.Tests;

/// <summary>The threads for calls that wait, with calls that do as they are told.</summary>
public sealed class WaitingThreadsTests
{
    [Fact]
    public async Task Queue_MoreCallsThanTheLimit_PerformsThemAllWithNoMoreThreads()
    {
        WaitingThreads threads = new("test", limit: 5);
        using ManualResetEventSlim stall = new();
        Call[] calls = [.. Enumerable.Range(0, 1000)
            .Select(_ => new Call(() => stall.Wait(TestContext.Current.CancellationToken)))];
        Array.ForEach(calls, threads.Queue);
        await Eventually.TrueAsync(() => threads.UnderWayCount == 5);
        Assert.Equal(5, threads.ThreadCount);
        Assert.Equal(995, threads.QueuedCount);
        stall.Set();
        await Task.WhenAll(calls.Select(call => call.Performed.Task)).WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        await Eventually.TrueAsync(() => threads.UnderWayCount == 0 && threads.QueuedCount == 0);
    }

    [Fact]
    public async Task Queue_AsManyCallsAsBefore_AllocatesNothing()
    {
        WaitingThreads threads = new("test", limit: 5);
        Call[] calls = [.. Enumerable.Range(0, 1000).Select(_ => new Call(static () => { }))];
        Action<IWaitingCall> queue = threads.Queue;
        long allocated = long.MaxValue;
        foreach (int round in Warm.Rounds(1, () => allocated == 0))
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            Array.ForEach(calls, queue);
            allocated = GC.GetAllocatedBytesForCurrentThread() - before;
            await Eventually.TrueAsync(() => threads.UnderWayCount == 0 && threads.QueuedCount == 0);
        }

        Assert.Equal(0, allocated);
    }

    [Fact]
    public async Task Queue_EveryOtherKindStalled_IsPerformed()
    {
        using ManualResetEventSlim stall = new();
        WaitingThreads[] kinds = [.. Enumerable.Range(0, 5).Select(_ => new WaitingThreads("test", limit: 1))];
        Call[] calls = [.. kinds[1..].SelectMany(_ => Enumerable.Range(0, 10).Select(_ => new Call(stall.Wait)))];
        for (int i = 0; i < calls.Length; i++)
        {
            kinds[1 + (i % 4)].Queue(calls[i]);
        }

        await Eventually.TrueAsync(() => kinds[1..].All(kind => kind is { UnderWayCount: 1, QueuedCount: 9, ThreadCount: 1 }));
        Call call = new(static () => { });
        kinds[0].Queue(call);
        await call.Performed.Task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        stall.Set();
        await Task.WhenAll(calls.Select(call => call.Performed.Task)).WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
    }

    [Fact]
    [Trait("Category", StressTime.Category)]
    public async Task Queue_OneCallAfterTheOther_PerformsEach()
    {
        // The thread is awake, spins, or sleeps when the next one comes.
        WaitingThreads threads = new("test", limit: 8);
        for (int i = 0; i < 20_000; i++)
        {
            Call call = new(static () => { });
            threads.Queue(call);
            await call.Performed.Task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
            Thread.SpinWait(i % 1000);
        }

        await Eventually.TrueAsync(() => threads.UnderWayCount == 0 && threads.QueuedCount == 0);
    }

    [Fact]
    [Trait("Category", StressTime.Category)]
    public async Task Threads_StayAwakeForTheNextCall_EndAllTheSame()
    {
        // Without a hop in between, so that most of the calls come soon after the one before.
        WaitingThreads threads = new("test", limit: 8);
        using ManualResetEventSlim performed = new();
        for (int i = 0; i < 10_000; i++)
        {
            performed.Reset();
            threads.Queue(new Call(performed.Set));
            Assert.True(performed.Wait(Eventually.Limit, TestContext.Current.CancellationToken));
        }

        await Eventually.TrueAsync(() => threads.ThreadCount == 0);
    }

    [Fact]
    public async Task Queue_ByTheCallThatIsPerformed_GoesOnOnTheSameThread()
    {
        WaitingThreads threads = new("test", limit: 8);
        Repeated call = new(threads, times: 1000, static () => { });
        threads.Queue(call);
        await call.Done.Task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        Assert.Single(call.Threads);
        await Eventually.TrueAsync(() => threads.UnderWayCount == 0);
        Assert.InRange(threads.ThreadCount, 0, 1);
    }

    [Fact]
    public async Task Queue_ByTheCallThatIsPerformed_WaitsBehindOthers()
    {
        WaitingThreads threads = new("test", limit: 1);
        using ManualResetEventSlim begun = new();
        using ManualResetEventSlim go = new();
        Repeated endless = new(threads, times: int.MaxValue, () =>
        {
            begun.Set();
            go.Wait(TestContext.Current.CancellationToken);
        });
        threads.Queue(endless);
        begun.Wait(TestContext.Current.CancellationToken);

        Call other = new(static () => { });
        threads.Queue(other);
        Assert.False(other.HasBegun);
        go.Set();
        await other.Performed.Task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        endless.IsOver = true;

        // The counts are 0 for a moment between two of its runs, too, and its next run needs the event.
        await endless.Done.Task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        await Eventually.TrueAsync(() => threads.UnderWayCount == 0 && threads.QueuedCount == 0);
    }

    [Fact]
    [Trait("Category", StressTime.Category)]
    public async Task Threads_Idle_EndAfterSomeSeconds()
    {
        WaitingThreads threads = new("test", limit: 8);
        Call[] calls = [.. Enumerable.Range(0, 100).Select(_ => new Call(static () => { }))];
        Array.ForEach(calls, threads.Queue);
        await Task.WhenAll(calls.Select(call => call.Performed.Task)).WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        await Eventually.TrueAsync(() => threads.ThreadCount == 0);
        Call again = new(static () => { });
        threads.Queue(again);
        await again.Performed.Task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
    }

    [Fact]
    public async Task Queue_FromManyThreads_PerformsEachCallOnce()
    {
        WaitingThreads threads = new("test", limit: 6);
        Call[] calls = [.. Enumerable.Range(0, 40_000).Select(i => new Call(static () => Thread.SpinWait(20)))];
        await Task.WhenAll(Enumerable.Range(0, 4).Select(part => Task.Run(() =>
        {
            for (int i = part; i < calls.Length; i += 4)
            {
                threads.Queue(calls[i]);
                if (i % 1000 == part)
                {
                    // So that the threads become idle now and then.
                    Thread.Sleep(1);
                }
            }
        })));
        await Task.WhenAll(calls.Select(call => call.Performed.Task)).WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        Assert.All(calls, call => Assert.Equal(1, call.Times));
        await Eventually.TrueAsync(() => threads.UnderWayCount == 0 && threads.QueuedCount == 0);
    }

    /// <summary>A new thread's object cannot be allocated: the counts must not say for ever that a thread is on its way.</summary>
    [Fact]
    public async Task Queue_WithoutMemoryForAThread_IsPerformedWithTheNextCall()
    {
        ChildProcess.SkipUnlessLinux();
        (int ExitCode, string Output, string Error) child = default;
        bool isAgain = true;
        for (int attempt = 0; attempt < 5 && isAgain; attempt++)
        {
            // The runtime itself may need memory at that moment, and then ends the process.
            child = await ChildProcess.RunAsync(
                "DOTNET_gcServer=0 DOTNET_GCHeapHardLimit=0x2000000 " + ChildProcess.Command("nothread"));
            isAgain = child.Error.StartsWith("Out of memory.", StringComparison.Ordinal);
        }

        Assert.True(child.ExitCode == 0, child.Output + child.Error);
    }

    private sealed class Call(Action perform) : IWaitingCall
    {
        private int _times;

        public TaskCompletionSource Performed { get; } = new(TaskCreationOptions.RunContinuationsAsynchronously);

        public int Times => Volatile.Read(ref _times);

        public bool HasBegun => Times > 0;

        void IWaitingCall.Perform()
        {
            Interlocked.Increment(ref _times);
            perform();
            Performed.TrySetResult();
        }
    }

    /// <summary>A call that queues itself again.</summary>
    private sealed class Repeated(WaitingThreads threads, int times, Action perform) : IWaitingCall
    {
        private int _times;
        private volatile bool _isOver;

        public TaskCompletionSource Done { get; } = new(TaskCreationOptions.RunContinuationsAsynchronously);

        public HashSet<Thread> Threads { get; } = [];

        public bool IsOver
        {
            set => _isOver = value;
        }

        void IWaitingCall.Perform()
        {
            Threads.Add(Thread.CurrentThread);
            perform();
            if (++_times < times && !_isOver)
            {
                threads.Queue(this);
            }
            else
            {
                Done.SetResult();
            }
        }
    }
}
