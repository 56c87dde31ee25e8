using System.Collections.Concurrent;
using System.Diagnostics;
using Pipelines.File.Waiting;

namespace FilePipelinesTests;

/// <summary>The threads for calls that wait, with calls that do as they are told.</summary>
public sealed class WaitingThreadsTests
{
    [Fact]
    public async Task Queue_MoreCallsThanTheLimit_PerformsThemAllWithNoMoreThreads()
    {
        WaitingThreads threads = new(limit: 9);
        using ManualResetEventSlim stall = new();
        Call[] calls = [.. Enumerable.Range(0, 1000).Select(_ => new Call(WaitKind.Sync, () => stall.Wait(TestContext.Current.CancellationToken)))];
        Array.ForEach(calls, threads.Queue);
        await Eventually.TrueAsync(() => threads.UnderWayCount >= 5);
        Assert.InRange(threads.ThreadCount, 5, 9);
        Assert.Equal(1000, threads.UnderWayCount + threads.QueuedCount);

        // Another kind is not held up.
        Call read = new(WaitKind.Read, static () => { });
        threads.Queue(read);
        await read.Performed.Task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        Assert.InRange(threads.ThreadCount, 5, 9);
        stall.Set();
        await Task.WhenAll(calls.Select(call => call.Performed.Task)).WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        await Eventually.TrueAsync(() => threads.UnderWayCount == 0 && threads.QueuedCount == 0);
    }

    [Fact]
    public async Task Queue_EveryKindStalled_StillPerformsOneOfEach()
    {
        WaitingThreads threads = new(limit: 5);
        using ManualResetEventSlim stall = new();
        List<Call> calls = [];
        foreach (WaitKind kind in Enum.GetValues<WaitKind>())
        {
            for (int i = 0; i < 10; i++)
            {
                calls.Add(new Call(kind, () => stall.Wait(TestContext.Current.CancellationToken)));
                threads.Queue(calls[^1]);
            }
        }

        await Eventually.TrueAsync(() => calls.GroupBy(call => ((IWaitingCall)call).WaitKind).All(kind => kind.Any(call => call.HasBegun)));

        // The application's pool may have taken the two kinds that it helps with.
        Assert.InRange(threads.ThreadCount, 3, 5);
        stall.Set();
        await Task.WhenAll(calls.Select(call => call.Performed.Task)).WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
    }

    [Fact]
    public async Task Queue_ReadsThatAllStall_GetMoreThreadsThanAtFirst()
    {
        WaitingThreads threads = new(limit: 16);
        using ManualResetEventSlim stall = new();
        Call[] calls = [.. Enumerable.Range(0, 12).Select(_ => new Call(WaitKind.Read, () => stall.Wait(TestContext.Current.CancellationToken)))];
        Array.ForEach(calls, threads.Queue);

        // Nothing is queued any more, so that only a thread of theirs can see that nothing goes on.
        await Eventually.TrueAsync(() => threads.UnderWayCount == 12);
        stall.Set();
        await Task.WhenAll(calls.Select(call => call.Performed.Task)).WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
    }

    [Theory]
    [InlineData(0, 1000, true, true, 1)]
    [InlineData(0, 1000, true, false, 1)]
    [InlineData(2, 1000, true, true, 2)]
    [InlineData(2, 1000, true, false, 3)]
    [InlineData(6, 1000, true, false, 9)]
    [InlineData(8, 1000, true, false, 10)]
    [InlineData(2, 5, true, false, 3)]
    [InlineData(2, 4, true, false, 2)]
    [InlineData(2, 2, false, false, 3)]
    [InlineData(2, 1, false, false, 2)]
    public void Look_CallWaits_GrowsWhereItIsForLongUnlessThreadsOfTheQueueCompute(int fewest, int milliseconds, bool hasProgress, bool isComputing, int target)
    {
        WaitingQueue queue = new(fewest, isForFew: true, mostHelpers: 1);
        IWaitingCall call = new Call(WaitKind.Write, static () => { });
        call.QueuedAt = 1000 * Stopwatch.Frequency;
        queue.Add(call);
        queue.Look(call.QueuedAt + (milliseconds * Stopwatch.Frequency / 1000), hasProgress, isComputing, most: 10);
        Assert.Equal(target, queue.Target);
        Assert.Same(call, queue.Take());
        Assert.Equal(Math.Max(fewest, target - 1), queue.Target);
    }

    [Fact]
    public void Look_NothingWaits_DoesNotGrow()
    {
        WaitingQueue queue = new(fewest: 2, isForFew: true);
        queue.Look(long.MaxValue, hasProgress: false, isComputing: false, most: 10);
        Assert.Equal(2, queue.Target);
    }

    [Fact]
    public async Task Queue_OneCallAfterTheOther_PerformsEach()
    {
        // The thread is awake, spins, or sleeps when the next one comes.
        WaitingThreads threads = new(limit: 8);
        for (int i = 0; i < 20_000; i++)
        {
            Call call = new((WaitKind)(i / 1000 % 5), static () => { });
            threads.Queue(call);
            await call.Performed.Task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
            Thread.SpinWait(i % 1000);
        }

        await Eventually.TrueAsync(() => threads.UnderWayCount == 0 && threads.QueuedCount == 0);
    }

    [Fact]
    public async Task Threads_StayAwakeForTheNextCall_EndAllTheSame()
    {
        // Without a hop in between, so that most of the calls come soon after the one before.
        WaitingThreads threads = new(limit: 8);
        using ManualResetEventSlim performed = new();
        for (int i = 0; i < 10_000; i++)
        {
            performed.Reset();
            threads.Queue(new Call(WaitKind.Sync, performed.Set));
            Assert.True(performed.Wait(Eventually.Limit, TestContext.Current.CancellationToken));
        }

        await Eventually.TrueAsync(() => threads.ThreadCount == 0);
    }

    [Fact]
    public async Task Queue_CallThatAlwaysHasMore_LeavesThePoolsThreadNowAndThen()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "The pool helps with no writes there.");
        ConcurrentQueue<IThreadPoolWorkItem> pool = new();
        WaitingThreads threads = new(limit: 5, pool.Enqueue);
        Endless call = new(Thread.CurrentThread);
        threads.Queue(call);
        Assert.True(pool.TryDequeue(out IThreadPoolWorkItem? helper));
        helper.Execute();
        Assert.NotEqual(Endless.Most, call.Times);

        // What it has left goes on, here or on a waiting thread.
        call.IsOver = true;
        while (pool.TryDequeue(out helper))
        {
            helper.Execute();
        }

        await Eventually.TrueAsync(() => threads.UnderWayCount == 0 && threads.QueuedCount == 0);
    }

    [Fact]
    public async Task Perform_SaysThereIsMoreOfAnotherKind_IsPerformedAgainAsThat()
    {
        WaitingThreads threads = new(limit: 4);
        List<WaitKind> kinds = [];
        TaskCompletionSource done = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Changing call = new(kinds, done);
        threads.Queue(call);
        await done.Task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        Assert.Equal([WaitKind.Write, WaitKind.Write, WaitKind.Sync], kinds);
        await Eventually.TrueAsync(() => threads.UnderWayCount == 0 && threads.QueuedCount == 0);
    }

    [Fact]
    public async Task Threads_Idle_EndAfterSomeSeconds()
    {
        WaitingThreads threads = new(limit: 8);
        Call[] calls = [.. Enumerable.Range(0, 100).Select(_ => new Call(WaitKind.Sync, static () => { }))];
        Array.ForEach(calls, threads.Queue);
        await Task.WhenAll(calls.Select(call => call.Performed.Task)).WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        await Eventually.TrueAsync(() => threads.ThreadCount == 0);
        Call again = new(WaitKind.Open, static () => { });
        threads.Queue(again);
        await again.Performed.Task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
    }

    [Fact]
    public async Task Queue_FromManyThreads_PerformsEachCallOnce()
    {
        WaitingThreads threads = new(limit: 6);
        Call[] calls = [.. Enumerable.Range(0, 40_000).Select(i => new Call((WaitKind)(i % 4), static () => Thread.SpinWait(20)))];
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

    private sealed class Call(WaitKind kind, Action perform) : IWaitingCall
    {
        private int _times;

        public TaskCompletionSource Performed { get; } = new(TaskCreationOptions.RunContinuationsAsynchronously);

        public int Times => Volatile.Read(ref _times);

        public bool HasBegun => Times > 0;

        WaitKind IWaitingCall.WaitKind => kind;

        IWaitingCall? IWaitingCall.NextCall { get; set; }

        long IWaitingCall.QueuedAt { get; set; }

        bool IWaitingCall.Perform()
        {
            Interlocked.Increment(ref _times);
            perform();
            Performed.TrySetResult();
            return false;
        }
    }

    /// <summary>A write that has more for as long as anybody performs it, which takes a moment; on that thread no more often than <see cref="Most"/>, so that it ends.</summary>
    private sealed class Endless(Thread thread) : IWaitingCall
    {
        public const int Most = 500;

        private volatile bool _isOver;

        public int Times { get; private set; }

        public bool IsOver
        {
            set => _isOver = value;
        }

        WaitKind IWaitingCall.WaitKind => WaitKind.Write;

        IWaitingCall? IWaitingCall.NextCall { get; set; }

        long IWaitingCall.QueuedAt { get; set; }

        bool IWaitingCall.Perform()
        {
            Thread.Sleep(2);
            if (Thread.CurrentThread == thread)
            {
                Times++;
            }

            return !_isOver && Times < Most;
        }
    }

    private sealed class Changing(List<WaitKind> kinds, TaskCompletionSource done) : IWaitingCall
    {
        public WaitKind WaitKind => kinds.Count < 2 ? WaitKind.Write : WaitKind.Sync;

        IWaitingCall? IWaitingCall.NextCall { get; set; }

        long IWaitingCall.QueuedAt { get; set; }

        bool IWaitingCall.Perform()
        {
            kinds.Add(WaitKind);
            if (kinds.Count == 3)
            {
                done.SetResult();
                return false;
            }

            return true;
        }
    }
}
