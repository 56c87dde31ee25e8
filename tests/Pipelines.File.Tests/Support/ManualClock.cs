namespace FilePipelines.Tests;

/// <summary>A clock that goes only as a test says, and makes the timers due that it passes.</summary>
internal sealed class ManualClock : TimeProvider
{
    private static readonly DateTimeOffset s_begin = DateTimeOffset.UtcNow;

    private readonly Lock _lock = new();
    private readonly List<Timer> _timers = [];
    private TimeSpan _elapsed;

    public TimeSpan Elapsed
    {
        get
        {
            lock (_lock)
            {
                return _elapsed;
            }
        }
    }

    public override long TimestampFrequency => TimeSpan.TicksPerSecond;

    public override long GetTimestamp() => Elapsed.Ticks;

    public override DateTimeOffset GetUtcNow() => s_begin + Elapsed;

    public override ITimer CreateTimer(TimerCallback callback, object? state, TimeSpan dueTime, TimeSpan period)
    {
        Timer timer = new(this, () => callback(state));
        timer.Change(dueTime, period);
        return timer;
    }

    /// <summary>
    /// Lets the clock go on in steps until the task is complete. The steps come fast, because many of them may be needed; what a step has
    /// begun may last longer than the step.
    /// </summary>
    public async Task AdvanceUntilAsync(Task task, TimeSpan step)
    {
        long begun = Environment.TickCount64;
        while (!task.IsCompleted)
        {
            Assert.True(Environment.TickCount64 - begun < Eventually.Limit.TotalMilliseconds,
                $"Not complete within {Eventually.Limit}, though the clock went on by {Elapsed}.");
            Advance(step);
            await Task.WhenAny(task, Task.Delay(1, TestContext.Current.CancellationToken));
        }
    }

    public void Advance(TimeSpan step)
    {
        List<Timer> due;
        lock (_lock)
        {
            _elapsed += step;
            due = [.. _timers.Where(timer => timer.Due <= _elapsed)];
            due.ForEach(timer => timer.Due = timer.Period > TimeSpan.Zero ? _elapsed + timer.Period : null);
        }

        due.ForEach(static timer => timer.Callback());
    }

    private sealed class Timer(ManualClock clock, Action callback) : ITimer
    {
        public Action Callback => callback;

        public TimeSpan? Due { get; set; }

        public TimeSpan Period { get; private set; }

        public bool Change(TimeSpan dueTime, TimeSpan period)
        {
            lock (clock._lock)
            {
                (Due, Period) = (dueTime < TimeSpan.Zero ? null : clock._elapsed + dueTime, period);
                if (!clock._timers.Contains(this))
                {
                    clock._timers.Add(this);
                }
            }

            return true;
        }

        public void Dispose()
        {
            lock (clock._lock)
            {
                clock._timers.Remove(this);
            }
        }

        public ValueTask DisposeAsync()
        {
            Dispose();
            return default;
        }
    }
}
