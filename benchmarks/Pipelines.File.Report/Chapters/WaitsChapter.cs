namespace FilePipelines.Benchmarks.Reporting;

/// <summary>Operations that wait for the device, many at once, and what they do to the rest of the program. Linux.</summary>
internal sealed class WaitsChapter(Scale scale) : ReportChapter
{
    private const int TargetCount = 64;
    private static readonly string[] s_kinds = [Waits.Reads, Waits.Flushes];
    private readonly List<Load> _loads = [];
    private readonly List<(int Count, Spread Microseconds)> _fifos = [];

    internal override string Title => "What waits";
    internal override double Weight => scale.IsQuick ? 20 : 55;
    internal override bool IsSupported => PageCache.IsSupported;

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfRate("headline-cold-reads", "Cold reads of 4 KiB, many at once", $"reads a second, {TargetCount} at once",
            ResultOf(Waits.Reads)),
        Headline.OfRate("headline-flushes", "Durable flushes, many files at once", $"flushes a second, {TargetCount} at once",
            ResultOf(Waits.Flushes)),
    ];

    internal override IEnumerable<GridResult> Others => s_kinds.Select(ResultOf);

    internal override IEnumerable<(string FileName, string Text)> DataFiles => [("waits.csv", Waits.ToCsv(_loads))];

    internal override async Task MeasureAsync(TimeSpan time)
    {
        IReadOnlyList<int> counts = scale.IsQuick ? [TargetCount] : Waits.Counts;
        foreach (string kind in s_kinds)
        {
            foreach (int count in counts)
            {
                _loads.AddRange(await Waits.MeasureAsync(kind, count, scale.MinRounds));
            }
        }

        foreach (int count in Waits.FifoCounts)
        {
            _fifos.Add((count, await Waits.WakeFifosAsync(count)));
        }
    }

    internal override void Write(Page page)
    {
        page.Paragraph("Cold reads of 4 KiB at random places, and flushes of 512 B to a file each that are on the device before the next "
            + "one, many at once; beside them an unrelated work item, queued to the thread pool a millisecond after the one before. "
            + "The measure is as many threads of one's own that block. Other numbers at once are in [waits.csv](waits.csv).");
        page.Table(
            [$"{TargetCount} at once", "way", "a second", "against threads", "p99, ms", "work item, p50, ms", "work item, p99, ms"],
            s_kinds.SelectMany(kind => AtOnce(kind, TargetCount)).Select(load => (IReadOnlyList<string>)
            [
                load.Kind == Waits.Reads ? "cold reads" : "durable flushes",
                Figures.Emphasised(load.Way),
                Figures.Count(load.PerSecond.Median),
                Figures.Emphasised(load.Way, Figures.Number(load.Against(AtOnce(load.Kind, TargetCount)[0]).Median)),
                Figures.Number(Load.At(load.Latencies, 0.99) / 1000),
                Figures.Number(Load.At(load.Delays, 0.5)),
                Figures.Number(Load.At(load.Delays, 0.99)),
            ]), texts: 2);
        (Load reads, Load flushes) = (AtOnce(Waits.Reads, TargetCount)[^1], AtOnce(Waits.Flushes, TargetCount)[^1]);
        page.Paragraph($"Waking one of {Figures.Count(_fifos[^1].Count)} idle FIFOs takes {Figures.Number(_fifos[^1].Microseconds.Median)} "
            + $"µs, and one of {_fifos[0].Count} {Figures.Number(_fifos[0].Microseconds.Median)} µs.");
        page.Table(
            ["target", "result"],
            [
                Target("durable flushes at least 0.85 of threads", flushes.Against(AtOnce(Waits.Flushes, TargetCount)[0]).Median >= 0.85),
                Target("cold reads at least 0.9 of threads", reads.Against(AtOnce(Waits.Reads, TargetCount)[0]).Median >= 0.9),
                Target("work item at most 0.2 ms (p50) and 2 ms (p99), reads", IsQuiet(reads)),
                Target("the same, flushes", IsQuiet(flushes)),
                Target("a FIFO of many at most 1.5 of one of few", _fifos[^1].Microseconds.Median <= 1.5 * _fifos[0].Microseconds.Median),
            ], texts: 2);

        static IReadOnlyList<string> Target(string what, bool isMet) => [what, isMet ? "met" : "**missed**"];
        static bool IsQuiet(Load load) => Load.At(load.Delays, 0.5) <= 0.2 && Load.At(load.Delays, 0.99) <= 2;
    }

    private Load[] AtOnce(string kind, int count) => [.. _loads.Where(load => load.Kind == kind && load.AtOnce == count)];

    // The target's number comes last.
    private GridResult ResultOf(string kind) => GridResult.OfLoads(kind == Waits.Reads ? "cold reads" : "durable flushes, many files",
        "at once", _loads.Where(load => load.Kind == kind).OrderBy(load => load.AtOnce == TargetCount),
        "**Many at once**: a thread of one's own needs no hand-over, and blocks.");
}
