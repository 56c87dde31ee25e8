using Pipelines.File;

namespace FilePipelinesTests;

/// <summary>The reusable wait: one thread completes it while another looks at it, takes its result and begins the next one.</summary>
public sealed class PooledCompletionTests
{
    [Fact]
    public async Task Complete_WhileTheOneWhoWaitsPollsAndReuses_GivesEveryResultToItsOwnWait()
    {
        // More pairs of threads than cores: a thread that is interrupted between two steps is what this is about.
        await Task.WhenAll(Enumerable.Range(0, 4).Select(_ => Task.Factory.StartNew(
            () => PlayAsync(TestContext.Current.CancellationToken), CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default).Unwrap()));
    }

    private static async Task PlayAsync(CancellationToken stop)
    {
        PooledCompletions<int> pool = new();
        PooledCompletion<int>? completion = null;
        int begun = 0;
        bool isDone = false;
        Thread completer = new(() =>
        {
            for (int next = 1, idle = 1; !Volatile.Read(ref isDone); idle++)
            {
                if (Volatile.Read(ref begun) == next)
                {
                    if (next % 3 == 0)
                    {
                        completion!.CompleteNow(next, null);
                    }
                    else
                    {
                        completion!.CompleteOnPool(next, null);
                    }


                    next++;
                }
                else if (idle % 500 == 0)
                {
                    Thread.Yield();
                }
            }
        })
        { IsBackground = true };
        completer.Start();
        try
        {
            long end = Environment.TickCount64 + 1500;
            for (int i = 1; Environment.TickCount64 < end && !stop.IsCancellationRequested; i++)
            {
                completion = pool.Rent();
                ValueTask<int> task = completion.Task;
                Volatile.Write(ref begun, i);
                for (int spins = 1; i % 8 != 0 && !task.IsCompleted; spins++)
                {
                    if (spins % 500 == 0)
                    {
                        Thread.Yield();
                    }
                }

                Assert.Equal(i, await task);
            }
        }
        finally
        {
            Volatile.Write(ref isDone, true);
            completer.Join();
        }
    }
}
