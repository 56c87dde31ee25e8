using Pipelines.File;
using Pipelines.File.Threading;

namespace FilePipelinesTests;

/// <summary>The turns of completions on the application's pool, with a clock and a queue that do as they are told.</summary>
public sealed class CompletionQueueTests
{
    private readonly Clock _clock = new();
    private readonly List<IThreadPoolWorkItem> _queue = [];
    private readonly List<int> _executed = [];
    private readonly CompletionQueue _completions;

    public CompletionQueueTests() => _completions = new CompletionQueue(_clock, _queue.Add);

    [Fact]
    public void Add_SeveralAtOnce_QueuesOneWorkItem()
    {
        AddSlow(10);
        Assert.Single(_queue);
    }

    [Fact]
    public void Execute_TurnIsOver_LeavesTheOthersToTurnsBehindWhatIsQueued()
    {
        AddSlow(3);
        Work unrelated = new(() => _executed.Add(-1));
        _queue.Add(unrelated);
        ExecuteAll();
        Assert.Equal([0, -1, 1, 2], _executed);
    }

    [Fact]
    public void Execute_CompletionsAreShort_TakesSeveralInOneTurn()
    {
        for (int i = 0; i < 10; i++)
        {
            int number = i;
            _completions.Add(new Work(() => _executed.Add(number)));
        }

        ExecuteNext();
        Assert.Equal(Enumerable.Range(0, 10), _executed);
    }

    [Fact]
    public void Execute_TurnHasWaited_TakesAQuarterOfThatTime()
    {
        AddSlow(20);
        _clock.Microseconds += 4000;
        ExecuteNext();
        Assert.Equal(10, _executed.Count);
        ExecuteAll();
        Assert.Equal(Enumerable.Range(0, 20), _executed);
    }

    [Fact]
    public void Execute_FirstCompletionHasBegun_TheOthersAreQueued()
    {
        int queued = 0;
        _completions.Add(new Work(() => queued = _queue.Count));
        AddSlow(1);
        ExecuteNext();
        Assert.Equal(1, queued);
    }

    [Fact]
    public void Execute_CompletionAddsAnother_QueuesATurnForIt()
    {
        _completions.Add(new Work(() =>
        {
            AddSlow(1);
            Assert.Single(_queue);
        }));
        ExecuteAll();
        Assert.Equal([0], _executed);
    }

    [Fact]
    public void Execute_NothingIsLeft_QueuesNoTurn()
    {
        AddSlow(1);
        ExecuteNext();
        Assert.Empty(_queue);
    }

    [Fact]
    public void Execute_CompletionLeavesAContextBehind_TheNextHasNone()
    {
        AsyncLocal<int> local = new();
        int seen = -1;
        SynchronizationContext? context = new();
        _completions.Add(new Work(() =>
        {
            local.Value = 1;
            SynchronizationContext.SetSynchronizationContext(new SynchronizationContext());
        }));
        _completions.Add(new Work(() =>
        {
            seen = local.Value;
            context = SynchronizationContext.Current;
        }));
        ExecuteNext();
        Assert.Equal(0, seen);
        Assert.Null(context);
    }

    [Theory]
    [InlineData("priority")]
    [InlineData("background")]
    [InlineData("name")]
    public void Execute_CompletionChangesTheThread_LeavesTheOthersToAnother(string what)
    {
        _completions.Add(new Work(() =>
        {
            Thread current = Thread.CurrentThread;
            current.Priority = what == "priority" ? ThreadPriority.BelowNormal : current.Priority;
            current.IsBackground = what == "background" ? !current.IsBackground : current.IsBackground;
            current.Name = what == "name" ? "changed" : current.Name;
        }));
        AddSlow(1);
        Thread thread = new(ExecuteNext) { IsBackground = true };
        thread.Start();
        Assert.True(thread.Join(Eventually.Limit));
        Assert.Empty(_executed);
        ExecuteAll();
        Assert.Equal([0], _executed);
    }

    [Fact]
    public async Task Shared_CompletionBlocksUntilALaterOneHasRun_BothEnd()
    {
        using ManualResetEventSlim later = new();
        TaskCompletionSource<bool> first = new(TaskCreationOptions.RunContinuationsAsynchronously);
        CancellationToken stop = TestContext.Current.CancellationToken;
        CompletionQueue.Shared.Add(new Work(() => first.SetResult(later.Wait(Eventually.Limit, stop))));
        CompletionQueue.Shared.Add(new Work(later.Set));
        Assert.True(await first.Task.WaitAsync(2 * Eventually.Limit, stop));
    }

    /// <summary>Each takes two turns' time, and tells its number.</summary>
    private void AddSlow(int count)
    {
        for (int i = 0; i < count; i++)
        {
            int number = i;
            _completions.Add(new Work(() =>
            {
                _executed.Add(number);
                _clock.Microseconds += 100;
            }));
        }
    }

    private void ExecuteNext()
    {
        IThreadPoolWorkItem next = _queue[0];
        _queue.RemoveAt(0);
        next.Execute();
    }

    private void ExecuteAll()
    {
        while (_queue.Count > 0)
        {
            ExecuteNext();
        }
    }

    private sealed class Clock : TimeProvider
    {
        public long Microseconds { get; set; } = 1_000_000;

        public override long TimestampFrequency => 1_000_000;

        public override long GetTimestamp() => Microseconds;
    }

    private sealed class Work(Action execute) : IThreadPoolWorkItem
    {
        public void Execute() => execute();
    }
}
