using Pipelines.File.Threading;

namespace FilePipelinesTests;

/// <summary>Where a loop goes on that is woken before it sleeps.</summary>
public sealed class LibraryLoopTests
{
    [Fact]
    public void IsAsleep_OnlyWhenWakingItRunsIt()
    {
        List<bool> asleep = [];
        Loop loop = new();
        loop.OnAwake = () =>
        {
            asleep.Add(loop.IsAsleep);
            if (asleep.Count == 1)
            {
                // As another thread may, when the loop is about to sleep.
                loop.Wake();
                asleep.Add(loop.IsAsleep);
            }
        };
        Assert.False(loop.IsAsleep);
        loop.Begin();
        Assert.True(loop.IsAsleep);
        loop.Wake();
        Assert.Equal([false, false, false], asleep);
        Assert.True(loop.IsAsleep);
    }

    private sealed class Loop : LibraryLoop
    {
        internal Action OnAwake { get; set; } = () => { };

        protected override async Task RunAsync()
        {
            while (true)
            {
                await SleepAsync();
                OnAwake();
            }
        }
    }
}
