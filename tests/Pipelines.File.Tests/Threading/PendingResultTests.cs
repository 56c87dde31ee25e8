using System.Runtime.CompilerServices;
using Pipelines.File.Threading;

namespace FilePipelines.Tests;

/// <summary>The reusable wait: one thread completes it while another looks at it, takes its result and begins the next one.</summary>
public sealed class PendingResultTests
{
    [Fact]
    public async Task Complete_WhileTheOneWhoWaitsPollsAndReuses_GivesEveryResultToItsOwnWait()
    {
        // More pairs of threads than cores: a thread that is interrupted between two steps is what this is about.
        await Task.WhenAll(Enumerable.Range(0, 4).Select(_ => Task.Factory.StartNew(
            () => PlayAsync(TestContext.Current.CancellationToken), CancellationToken.None, TaskCreationOptions.LongRunning,
            TaskScheduler.Default).Unwrap()));
    }

    [Fact]
    public async Task GetResult_FromSeveralThreadsAtOnce_LeavesTheNextWaitAlone()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(),
            "Nothing of it is of a system, and under Wine 8 threads that all throw at once now and then never end.");
        Assert.Equal(0,
            await Task.Factory.StartNew(CountStolenWaits, CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default));
    }

    /// <summary>A caller may leave the task of a flush where it is, and its token may live as long as the program.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Complete_NobodyTakesTheResult_TheTokenDoesNotKeepTheOwner(bool isBeforeTheRegistration)
    {
        using CancellationTokenSource source = new();
        WeakReference owner = Forget(source.Token, isBeforeTheRegistration);
        GC.Collect();
        GC.WaitForPendingFinalizers();
        GC.Collect();
        Assert.False(owner.IsAlive);

        [MethodImpl(MethodImplOptions.NoInlining)]
        static WeakReference Forget(CancellationToken token, bool isBeforeTheRegistration)
        {
            object owner = new();
            PendingResult<int> pending = PendingResult<int>.Rent(new(), token);
            if (isBeforeTheRegistration)
            {
                pending.CompleteNow(1, null);
                Discard(pending.RegisterCancellation(static (_, _) => { }, owner, token));
            }
            else
            {
                Discard(pending.RegisterCancellation(static (_, _) => { }, owner, token));
                pending.CompleteNow(1, null);
            }

            return new WeakReference(owner);
        }

        // As a caller does who takes no result.
        static void Discard(ValueTask<int> wait) => Assert.True(wait != default);
    }

    private static int CountStolenWaits()
    {
        ValueTask<int> shared = default;
        int round = 0;
        Thread[] others = [.. Enumerable.Range(0, 2).Select(_ => new Thread(() =>
        {
            for (int seen = 0; seen >= 0;)
            {
                int now = Volatile.Read(ref round);
                if (now != seen)
                {
                    seen = now;
                    TryTake(shared);
                }
            }
        })
        { IsBackground = true })];
        Array.ForEach(others, other => other.Start());
        int stolen = 0;
        Stack<PendingResult<int>> free = new();
        long end = Environment.TickCount64 + 1500;
        for (int i = 1; Environment.TickCount64 < end; i++)
        {
            PendingResult<int> pending = PendingResult<int>.Rent(free, CancellationToken.None);
            shared = pending.Task;
            pending.CompleteNow(i, null);
            Volatile.Write(ref round, i);
            _ = TryTake(pending.Task);

            // This wait is nobody else's.
            PendingResult<int> next = PendingResult<int>.Rent(free, CancellationToken.None);
            ValueTask<int> task = next.Task;
            next.CompleteNow(-i, null);
            stolen += TryTake(task) == -i ? 0 : 1;
        }

        Volatile.Write(ref round, -1);
        Array.ForEach(others, other => other.Join());
        return stolen;
    }

    private static int? TryTake(ValueTask<int> task)
    {
        try
        {
            return task.IsCompleted ? task.GetAwaiter().GetResult() : null;
        }
        catch (InvalidOperationException)
        {
            return null;
        }
    }

    private static async Task PlayAsync(CancellationToken stop)
    {
        PendingResult<int>? pending = null;
        Stack<PendingResult<int>> free = new();
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
                        pending!.CompleteNow(next, null);
                    }
                    else
                    {
                        pending!.CompleteOnPool(next, null);
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
                pending = PendingResult<int>.Rent(free, CancellationToken.None);
                ValueTask<int> task = pending.Task;
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
