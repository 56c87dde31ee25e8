using System.Diagnostics;
using System.Globalization;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Durable;

/// <summary>
/// <c>durable [--rounds N]</c>: commits a second and how long one takes, with 1, 8 and 64 producers, every way in the same rounds. A
/// producer is a thread of its own where the way blocks it, and a task on it where it does not.
/// </summary>
internal static class CommitMeasurement
{
    private const int DefaultRounds = 9;

    private static readonly TimeSpan s_share = TimeSpan.FromMilliseconds(200);

    internal static IReadOnlyList<int> ProducerCounts { get; } = [1, 8, 64];

    internal static async Task<int> RunAsync(string[] arguments)
    {
        int rounds = DefaultRounds;
        string[] only = [];
        for (int i = 0; i < arguments.Length; i += 2)
        {
            string? value = i + 1 < arguments.Length ? arguments[i + 1] : null;
            bool isKnown = arguments[i] switch
            {
                "--rounds" => int.TryParse(value, CultureInfo.InvariantCulture, out rounds) && rounds > 0,
                "--only" => (only = value?.Split(',') ?? []).Length > 0,
                _ => false,
            };
            if (!isKnown)
            {
                await Console.Error.WriteLineAsync("durable does not understand that: durable [--rounds N] [--only PART-OF-A-NAME,...]");
                return 2;
            }
        }

        Console.WriteLine("way; file; producers; commits/s (quartiles); ratio to by hand; p50 µs; p99 µs");
        foreach (CommitFigures f in await MeasureAsync(rounds, ProducerCounts, null, only))
        {
            Console.WriteLine(string.Create(
                CultureInfo.InvariantCulture,
                $"{f.Name}; {f.File}; {f.Producers}; {f.PerSecond.Median:N0} "
                + $"({f.PerSecond.LowerQuartile:N0}–{f.PerSecond.UpperQuartile:N0}); "
                + $"{f.Ratio.Median:0.00} ({f.Ratio.LowerQuartile:0.00}–{f.Ratio.UpperQuartile:0.00}); {f.Median:0}; {f.NinetyNinth:0}"));
        }

        return 0;
    }

    /// <summary>Every way with every number of producers.</summary>
    /// <param name="rounds">How often each is measured.</param>
    /// <param name="producerCounts">How many producers commit at once.</param>
    /// <param name="onShare">Told how much of it is done, 0 to 1.</param>
    /// <param name="only">Parts of the names of the ways, which come with the way by hand; none: all ways.</param>
    internal static async Task<IReadOnlyList<CommitFigures>> MeasureAsync(
        int rounds, IReadOnlyList<int> producerCounts, Action<double>? onShare, params string[] only)
    {
        List<CommitFigures> figures = [];
        foreach (int producers in producerCounts)
        {
            using TemporaryFolder folder = new();
            CommitWay[] ways =
            [
                .. CommitWays.All.Select(make => make()).Where(way => only.Length == 0 || way is GroupCommitByHand
                    || only.Any(part => way.Name.Contains(part, StringComparison.OrdinalIgnoreCase))),
            ];
            try
            {
                for (int i = 0; i < ways.Length; i++)
                {
                    await ways[i].OpenAsync(folder.PathOf($"commits-{i}"), producers);

                    // The just-in-time compiler, and the file's first blocks.
                    await ways[i].BeginRoundAsync();
                    await RunAsync(ways[i], producers, s_share);
                    await RunAsync(ways[i], producers, s_share);
                    await ways[i].EndRoundAsync();
                }

                List<double>[] perSecond = [.. ways.Select(_ => new List<double>())];
                List<double>[] latencies = [.. ways.Select(_ => new List<double>())];
                for (int round = 0; round < rounds; round++)
                {
                    for (int i = 0; i < ways.Length; i++)
                    {
                        int index = (round + i) % ways.Length;
                        await ways[index].BeginRoundAsync();
                        (double rate, List<double> times) = await RunAsync(ways[index], producers, s_share);
                        await ways[index].EndRoundAsync();
                        perSecond[index].Add(rate);
                        latencies[index].AddRange(times);
                    }

                    onShare?.Invoke((figures.Count + ((double)ways.Length * round / rounds)) / (ways.Length * producerCounts.Count));
                }

                for (int i = 0; i < ways.Length; i++)
                {
                    latencies[i].Sort();
                    figures.Add(new CommitFigures(
                        ways[i].Name,
                        ways[i].File,
                        producers,
                        Spread.Of(perSecond[i]),
                        Spread.Of(perSecond[i].Zip(
                            perSecond[Array.FindIndex(ways, way => way is GroupCommitByHand && way.File == ways[i].File)],
                            (own, byHand) => own / byHand)),
                        latencies[i][latencies[i].Count / 2],
                        latencies[i][(int)((latencies[i].Count - 1) * 0.99)]));
                }
            }
            finally
            {
                Array.ForEach(ways, way => way.Dispose());
            }
        }

        return figures;
    }

    private static async Task<(double PerSecond, List<double> Microseconds)> RunAsync(CommitWay way, int producers, TimeSpan duration)
    {
        long start = Stopwatch.GetTimestamp();
        List<double>[] times = await Task.WhenAll(Enumerable.Range(0, producers).Select(producer => Task.Factory.StartNew(
            async () =>
            {
                byte[] record = new byte[CommitWay.RecordSize];
                new Random(producer).NextBytes(record);
                List<double> mine = [];
                while (Stopwatch.GetElapsedTime(start) < duration)
                {
                    long begin = Stopwatch.GetTimestamp();
                    await way.CommitAsync(producer, record);
                    mine.Add(Stopwatch.GetElapsedTime(begin).TotalMicroseconds);
                }

                return mine;
            },
            TaskCreationOptions.LongRunning).Unwrap()));
        double seconds = Stopwatch.GetElapsedTime(start).TotalSeconds;
        List<double> all = [.. times.SelectMany(mine => mine)];
        return (all.Count / seconds, all);
    }
}
