using System.Diagnostics;
using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Follow;

/// <summary>Measures every way: how late a line is while one file is followed, and what a thousand idle files cost. Linux.</summary>
internal static class FollowMeasurement
{
    /// <summary>How many files are idle.</summary>
    internal const int IdleFiles = 1000;

    private const int Lines = 1000;
    private const int WarmUpLines = 20;
    private const int LeastLines = 20;

    // No multiple of the polls' interval, so that lines come at any moment of it.
    private const int MillisecondsBetween = 3;
    private const int SettleMilliseconds = 1500;

    /// <summary>How long lines come to one way, and how long nothing comes, where nobody says otherwise.</summary>
    internal static TimeSpan DefaultTime { get; } = TimeSpan.FromSeconds(8);

    /// <summary>Measures all ways.</summary>
    /// <param name="time">How long lines come to each, at most, and half as long nothing comes.</param>
    /// <param name="onStep">Told after each of <see cref="StepCount"/>.</param>
    internal static async Task<IReadOnlyList<FollowFigures>> RunAsync(TimeSpan time, Action onStep)
    {
        List<FollowFigures> figures = [];
        foreach ((string name, Func<IReadOnlyList<string>, IFollowWay> start) in FollowWays.All)
        {
            double[] late = await LatenessAsync(start, time);
            onStep();
            (double cores, int threads) = await IdleAsync(start, time / 2);
            onStep();
            figures.Add(new FollowFigures(name, late[late.Length / 2], late[(int)((late.Length - 1) * 0.99)], cores, threads));
        }

        return figures;
    }

    /// <summary>How many steps there are.</summary>
    internal static int StepCount => 2 * FollowWays.All.Count;

    private static async Task<double[]> LatenessAsync(Func<IReadOnlyList<string>, IFollowWay> start, TimeSpan time)
    {
        using TemporaryFolder folder = new();
        string path = folder.PathOf("log");
        await using FileStream file = new(path, FileMode.CreateNew, FileAccess.Write, FileShare.ReadWrite, bufferSize: 0);
        await using IFollowWay way = start([path]);
        await Task.Delay(SettleMilliseconds / 3);
        List<double> late = new(Lines);
        Task[] waiting = new Task[1];
        long first = Stopwatch.GetTimestamp();
        for (int i = 0; i < WarmUpLines + LeastLines || (i < WarmUpLines + Lines && Stopwatch.GetElapsedTime(first) < time); i++)
        {
            waiting[0] = way.NextLineAsync();
            long begin = Stopwatch.GetTimestamp();
            file.Write("2026-08-01T12:00:00.000Z INFO a line as logs have them, of about eighty bytes or so\n"u8);
            await waiting[0];
            if (i >= WarmUpLines)
            {
                late.Add(Stopwatch.GetElapsedTime(begin).TotalMilliseconds);
            }

            await Task.Delay(MillisecondsBetween);
        }

        late.Sort();
        return [.. late];
    }

    private static async Task<(double Cores, int Threads)> IdleAsync(Func<IReadOnlyList<string>, IFollowWay> start, TimeSpan time)
    {
        using TemporaryFolder folder = new();
        string[] paths = [.. Enumerable.Range(0, IdleFiles).Select(i => folder.PathOf($"log{i}"))];
        foreach (string path in paths)
        {
            await File.WriteAllTextAsync(path, "a line\n");
        }

        int threads = Process.GetCurrentProcess().Threads.Count;
        await using IFollowWay way = start(paths);
        Task first = way.NextLineAsync();
        await Task.Delay(SettleMilliseconds);
        TimeSpan cpu = way.Cpu;
        long begin = Stopwatch.GetTimestamp();
        await Task.Delay(time);
        double cores = (way.Cpu - cpu) / Stopwatch.GetElapsedTime(begin) * 100;
        int more = way.Threads - (way.Cpu.Ticks > 0 && way.Threads >= threads ? threads : 0);
        await File.AppendAllTextAsync(paths[0], "the last\n");
        await first;
        return (cores, more);
    }
}
