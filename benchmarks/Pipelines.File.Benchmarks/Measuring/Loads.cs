namespace FilePipelines.Benchmarks;

/// <summary>A way that many callers use at once, each of which waits for its own operation.</summary>
/// <param name="Name">What it is called in tables.</param>
/// <param name="Kind">Ways of different kinds are not compared.</param>
/// <param name="Blocks">It blocks its caller, which is a thread of its own then; else a task of the pool.</param>
/// <param name="OpenAsync">Readies it at a path, for so many callers.</param>
internal sealed record LoadWay(string Name, string Kind, bool Blocks, Func<string, int, ValueTask<OpenLoad>> OpenAsync);

/// <summary>Such a way while it is measured.</summary>
/// <param name="OperateAsync">
/// Done when the bytes are here, or on the device. Called by one caller at a time for each number.
/// </param>
/// <param name="CloseAsync">After the last round.</param>
internal sealed record OpenLoad(Func<int, ValueTask> OperateAsync, Func<ValueTask> CloseAsync)
{
    /// <summary>Before each round, not measured.</summary>
    internal Func<ValueTask> BeginRoundAsync { get; init; } = static () => default;

    /// <summary>After each round: nothing of it goes on beside the other ways.</summary>
    internal Func<ValueTask> EndRoundAsync { get; init; } = static () => default;
}

/// <summary>What came of one of them.</summary>
/// <param name="Way">Its name.</param>
/// <param name="Kind">The way's.</param>
/// <param name="AtOnce">How many callers.</param>
/// <param name="Rates">Operations a second, in each round.</param>
/// <param name="CpuMicroseconds">Of the whole process, for one operation.</param>
/// <param name="Latencies">Microseconds of each operation, in ascending order.</param>
/// <param name="Delays">Milliseconds that unrelated work items waited, in ascending order, where that was measured.</param>
/// <param name="PoolThreads">The most threads that the thread pool had then.</param>
internal sealed record Load(string Way, string Kind, int AtOnce, IReadOnlyList<double> Rates, double CpuMicroseconds,
    IReadOnlyList<double> Latencies, IReadOnlyList<double> Delays, int PoolThreads)
{
    internal Spread PerSecond => Spread.Of(Rates);

    /// <summary>Its operations a second against another's of the same round.</summary>
    internal Spread Against(Load other) => Spread.Of(Rates.Zip(other.Rates, static (own, others) => own / others));

    /// <summary>The same as the time of one operation.</summary>
    internal Measured ToMeasured(Load first)
        => new(Way, [.. Rates.Select(static rate => 1e6 / rate)], [.. first.Rates.Select(static rate => 1e6 / rate)], CpuMicroseconds, 0);

    internal static double At(IReadOnlyList<double> sorted, double fraction) => sorted[(int)((sorted.Count - 1) * fraction)];
}

/// <summary>Measures such ways round by round, each beginning with another one.</summary>
internal static class Loads
{
    // The first ones compile.
    private const int WarmUpRounds = 2;

    private sealed record Round(double PerSecond, double CpuMicroseconds, IEnumerable<double> Latencies, IReadOnlyList<double> Delays,
        int PoolThreads);

    /// <param name="goesOn">Whether a caller goes on after so many operations and so long a time.</param>
    /// <param name="isProbed">Whether unrelated work items are queued meanwhile.</param>
    internal static async Task<IReadOnlyList<Load>> MeasureAsync(IReadOnlyList<LoadWay> ways, int atOnce, int rounds,
        Func<int, TimeSpan, bool> goesOn, bool isProbed = false)
    {
        using TemporaryFolder folder = new();
        List<Round>[] measured = [.. ways.Select(_ => new List<Round>())];
        List<OpenLoad> open = [];
        try
        {
            foreach (LoadWay way in ways)
            {
                open.Add(await way.OpenAsync(folder.PathOf($"way-{open.Count}"), atOnce));
            }

            for (int round = 0; round < WarmUpRounds + rounds; round++)
            {
                for (int i = 0; i < ways.Count; i++)
                {
                    int index = (round + i) % ways.Count;
                    await open[index].BeginRoundAsync();
                    Round result = await RunAsync(open[index], ways[index].Blocks, atOnce, goesOn, isProbed);
                    await open[index].EndRoundAsync();
                    if (round >= WarmUpRounds)
                    {
                        measured[index].Add(result);
                    }
                }
            }
        }
        finally
        {
            foreach (OpenLoad way in open)
            {
                await way.CloseAsync();
            }
        }

        return [.. ways.Zip(measured, (way, all) => new Load(
            way.Name, way.Kind, atOnce, [.. all.Select(round => round.PerSecond)],
            Spread.Of(all.Select(round => round.CpuMicroseconds)).Median,
            [.. all.SelectMany(round => round.Latencies).Order()], [.. all.SelectMany(round => round.Delays).Order()],
            all.Max(round => round.PoolThreads)))];
    }

    private static async Task<Round> RunAsync(
        OpenLoad way, bool blocks, int callers, Func<int, TimeSpan, bool> goesOn, bool isProbed)
    {
        using ThreadPoolProbe? probe = isProbed ? new() : null;
        TaskCompletionSource start = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TimeSpan cpu = Environment.CpuUsage.TotalTime;
        long begin = Stopwatch.GetTimestamp();
        if (!isProbed)
        {
            // As they come: SQLite's busy callers sleep, and 64 that begin at the same moment make a tenth of the commits.
            start.SetResult();
        }

        Task<List<double>>[] running = [.. Enumerable.Range(0, callers).Select(caller => blocks
            ? Task.Factory.StartNew(
                () =>
                {
                    start.Task.Wait();
                    return WorkAsync(caller).GetAwaiter().GetResult();
                },
                CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default)
            : Task.Run(async () =>
            {
                await start.Task;
                return await WorkAsync(caller);
            }))];
        if (isProbed)
        {
            cpu = Environment.CpuUsage.TotalTime;
            begin = Stopwatch.GetTimestamp();
            start.SetResult();
        }

        List<double>[] latencies = await Task.WhenAll(running);
        double seconds = Stopwatch.GetElapsedTime(begin).TotalSeconds;
        cpu = Environment.CpuUsage.TotalTime - cpu;
        int operations = latencies.Sum(mine => mine.Count);
        return new Round(operations / seconds, cpu.TotalMicroseconds / operations, latencies.SelectMany(mine => mine),
            probe?.Stop() ?? [], probe?.MostPoolThreads ?? 0);

        // Once at least, also where the caller starts late.
        async Task<List<double>> WorkAsync(int caller)
        {
            List<double> mine = [];
            do
            {
                long at = Stopwatch.GetTimestamp();
                await way.OperateAsync(caller);
                mine.Add(Stopwatch.GetElapsedTime(at).TotalMicroseconds);
            }
            while (goesOn(mine.Count, Stopwatch.GetElapsedTime(begin)));

            return mine;
        }
    }
}
