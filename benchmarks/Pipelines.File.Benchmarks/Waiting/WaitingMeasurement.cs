using System.Diagnostics;
using FilePipelinesBenchmarks.Cold;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Waiting;

/// <summary>Measures every way at one point, in turns, with a probe beside that queues unrelated work items.</summary>
internal static class WaitingMeasurement
{
    /// <summary>How many operate at once.</summary>
    internal static IReadOnlyList<int> Counts { get; } = [8, 64, 256];

    private const long FileLength = 256L * 1024 * 1024;
    private const int PieceSize = 4096;
    private const int Reads = 16_384;
    private const int Flushes = 8192;

    /// <summary>One after the other.</summary>
    /// <param name="isReads">Reads; else flushes.</param>
    /// <param name="atOnce">How many operate at once.</param>
    /// <param name="rounds">How often each way is measured.</param>
    internal static async Task<IReadOnlyList<WaitingFigures>> RunAsync(bool isReads, int atOnce, int rounds)
    {
        using TemporaryFolder folder = new();
        if (isReads)
        {
            PageCache.TouchMemory(folder);
        }

        using IntegerFile? file = isReads ? IntegerFile.Make(folder, FileLength) : null;
        int each = (isReads ? Reads : Flushes) / Math.Max(atOnce, 32);
        WaitingCase point = new(folder, file is null ? null : new RandomReadCase(file, atOnce, each, PieceSize), atOnce, each);
        IReadOnlyList<WaitingWay> ways = isReads ? WaitingWay.Reads : WaitingWay.Flushes;
        List<Round>[] measured = [.. ways.Select(_ => new List<Round>())];

        // The first round compiles, and is not counted.
        for (int round = 0; round <= rounds; round++)
        {
            for (int i = 0; i < ways.Count; i++)
            {
                int way = (round + i) % ways.Count;
                Round result = await RunAsync(ways[way], point);
                if (round > 0)
                {
                    measured[way].Add(result);
                }
            }
        }

        return [.. ways.Select((way, index) => Sum(way, measured[index], measured[0]))];
    }

    private static async Task<Round> RunAsync(WaitingWay way, WaitingCase point)
    {
        point.Prepare();
        WaitingWorker[] workers = [.. Enumerable.Range(0, point.AtOnce).Select(worker => way.MakeWorker(point, worker))];
        double[][] latencies = [.. workers.Select(_ => new double[point.OperationsEach])];
        using ThreadPoolProbe probe = new();
        using ManualResetEventSlim start = new();
        TaskCompletionSource startTasks = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Task[] running = [.. workers.Select((worker, index) => way.HasOwnThreads
            ? Task.Factory.StartNew(
                () =>
                {
                    start.Wait();
                    WorkAsync(worker, latencies[index]).GetAwaiter().GetResult();
                },
                CancellationToken.None,
                TaskCreationOptions.LongRunning,
                TaskScheduler.Default)
            : Task.Run(async () =>
            {
                await startTasks.Task;
                await WorkAsync(worker, latencies[index]);
            }))];
        TimeSpan cpu = Environment.CpuUsage.TotalTime;
        long begin = Stopwatch.GetTimestamp();
        start.Set();
        startTasks.SetResult();
        await Task.WhenAll(running);
        double seconds = Stopwatch.GetElapsedTime(begin).TotalSeconds;
        cpu = Environment.CpuUsage.TotalTime - cpu;
        IReadOnlyList<double> delays = probe.Stop();
        foreach (WaitingWorker worker in workers)
        {
            await worker.DisposeAsync();
        }

        point.Finish();
        double operations = (double)point.AtOnce * point.OperationsEach;
        return new Round(operations / seconds, cpu.TotalMicroseconds / operations,
            [.. latencies.SelectMany(each => each)], delays, probe.MostPoolThreads);
    }

    private static async Task WorkAsync(WaitingWorker worker, double[] latencies)
    {
        for (int i = 0; i < latencies.Length; i++)
        {
            long begin = Stopwatch.GetTimestamp();
            await worker.OperateAsync();
            latencies[i] = Stopwatch.GetElapsedTime(begin).TotalMilliseconds;
        }
    }

    private static WaitingFigures Sum(WaitingWay way, List<Round> rounds, List<Round> baseline)
    {
        double[] latencies = [.. rounds.SelectMany(round => round.Latencies).Order()];
        double[] delays = [.. rounds.SelectMany(round => round.Delays).Order()];
        return new WaitingFigures(
            way.Name,
            Spread.Of(rounds.Select(round => round.OperationsPerSecond)),
            Spread.Of(rounds.Select((round, index) => round.OperationsPerSecond / baseline[index].OperationsPerSecond)),
            At(latencies, 0.5),
            At(latencies, 0.99),
            rounds.Select(round => round.CpuMicroseconds).Order().ElementAt(rounds.Count / 2),
            At(delays, 0.5),
            At(delays, 0.99),
            delays[^1],
            rounds.Max(round => round.PoolThreads));
    }

    private static double At(double[] sorted, double fraction) => sorted[(int)((sorted.Length - 1) * fraction)];

    private sealed record Round(
        double OperationsPerSecond, double CpuMicroseconds, double[] Latencies, IReadOnlyList<double> Delays, int PoolThreads);
}
