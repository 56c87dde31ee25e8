using System.Globalization;
using System.Text;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>Operations that wait for the device, many at once, and what they do to the rest of the program. Linux.</summary>
internal sealed class WaitsChapter(Scale scale) : ReportChapter
{
    private const int TargetCount = 64;

    private readonly List<(bool IsReads, int AtOnce, IReadOnlyList<(Load Load, Waits.Disturbance Others)> Ways)> _points = [];
    private readonly List<(int Count, Spread Microseconds)> _fifos = [];

    internal override string Title => "What waits";

    internal override double Weight => scale.IsQuick ? 20 : 55;

    internal override bool IsSupported => PageCache.IsSupported;

    internal override IEnumerable<Headline> Headlines =>
    [
        Rates(isReads: true, "headline-cold-reads", "Cold reads of 4 KiB, many at once", $"reads a second, {TargetCount} at once"),
        Rates(isReads: false, "headline-flushes", "Durable flushes, many files at once", $"flushes a second, {TargetCount} at once"),
    ];

    internal override IEnumerable<(string FileName, string Text)> DataFiles
    {
        get
        {
            StringBuilder csv = new("operation,at_once,method,per_second_median,ratio_lower_quartile,ratio_median,ratio_upper_quartile,"
                + "ms_median,ms_99th_percentile,cpu_us,delay_ms_median,delay_ms_99th_percentile,delay_ms_longest,pool_threads\n");
            foreach ((bool isReads, int atOnce, IReadOnlyList<(Load Load, Waits.Disturbance Others)> ways) in _points)
            {
                foreach ((Load load, Waits.Disturbance others) in ways)
                {
                    csv.Append(CultureInfo.InvariantCulture, $"{(isReads ? "read" : "flush")},{atOnce},{Figures.Quoted(load.Way)},"
                        + $"{load.PerSecond.Median:0},{load.Ratio.LowerQuartile:0.000},{load.Ratio.Median:0.000},"
                        + $"{load.Ratio.UpperQuartile:0.000},{load.Median / 1000:0.000},{load.NinetyNinth / 1000:0.000},"
                        + $"{others.CpuMicroseconds:0.0},{others.Median:0.000},{others.NinetyNinth:0.000},{others.Longest:0.000},"
                        + $"{others.PoolThreads}\n");
                }
            }

            return [("waits.csv", csv.ToString())];
        }
    }

    internal override async Task MeasureAsync(Allowance allowance)
    {
        int rounds = scale.MinRounds;
        IReadOnlyList<int> counts = scale.IsQuick ? [TargetCount] : Waits.Counts;
        double steps = (2 * counts.Count) + IdleFifos.Counts.Count;
        foreach (bool isReads in (bool[])[true, false])
        {
            foreach (int count in counts)
            {
                _points.Add((isReads, count, await Waits.MeasureAsync(isReads, count, rounds)));
                allowance.OnShare(_points.Count / steps);
            }
        }

        foreach (int count in IdleFifos.Counts)
        {
            _fifos.Add((count, await IdleFifos.RunAsync(count)));
            allowance.OnShare((_points.Count + _fifos.Count) / steps);
        }
    }

    internal override void Write(Page page)
    {
        page.Paragraph("Cold reads of 4 KiB at random places, and flushes of 512 B that are each on the device before the next one, "
            + "many at once; beside them an unrelated work item, queued to the thread pool a millisecond after the one before was done. "
            + "The measure is as many threads of one's own that block. This library makes such calls on threads of its own, and the thread "
            + "pool stays free.");
        WriteKind(page, isReads: true);
        WriteKind(page, isReads: false);

        (Load reads, Waits.Disturbance besideReads) = AtTarget(isReads: true);
        (Load flushes, Waits.Disturbance besideFlushes) = AtTarget(isReads: false);
        double wakeUps = _fifos[^1].Microseconds.Median / _fifos[0].Microseconds.Median;
        page.Paragraph($"Targets, with {TargetCount} at once:");
        page.Table(
            ["figure", "target", "this run", "result"],
            [
                AtLeast("durable flushes against threads of one's own", 0.85, flushes.Ratio.Median),
                AtLeast("cold reads against threads of one's own", 0.9, reads.Ratio.Median),
                AtMost("unrelated work item, p50, reads", 0.2, besideReads.Median, " ms"),
                AtMost("unrelated work item, p99, reads", 2, besideReads.NinetyNinth, " ms"),
                AtMost("unrelated work item, p50, flushes", 0.2, besideFlushes.Median, " ms"),
                AtMost("unrelated work item, p99, flushes", 2, besideFlushes.NinetyNinth, " ms"),
                AtMost($"waking one of {Figures.Count(_fifos[^1].Count)} idle FIFOs against one of {_fifos[0].Count}: "
                    + $"{Figures.Number(_fifos[^1].Microseconds.Median)} and {Figures.Number(_fifos[0].Microseconds.Median)} "
                    + "µs", 1.5, wakeUps, string.Empty),
            ],
            isText: true);

        (Load Load, Waits.Disturbance Others) AtTarget(bool isReads)
            => _points.Single(point => point.IsReads == isReads && point.AtOnce == TargetCount).Ways[^1];

        static IReadOnlyList<string> AtLeast(string what, double bar, double figure) =>
        [
            what, $"at least {bar.ToString(CultureInfo.InvariantCulture)}", Figures.Number(figure),
            figure >= bar ? "met" : "**missed**",
        ];

        static IReadOnlyList<string> AtMost(string what, double bar, double figure, string unit) =>
        [
            what, $"at most {bar.ToString(CultureInfo.InvariantCulture)}{unit}", Figures.Number(figure),
            figure <= bar ? "met" : "**missed**",
        ];
    }

    private Headline Rates(bool isReads, string key, string question, string unit)
        => Headline.OfRates(
            key,
            question,
            unit,
            [
                .. _points
                    .Where(point => point.IsReads == isReads)
                    .OrderBy(point => point.AtOnce == TargetCount)
                    .Select(point => ($"{point.AtOnce} at once",
                        (IReadOnlyList<(string, double)>)[.. point.Ways.Select(way => (way.Load.Way, way.Load.PerSecond.Median))])),
            ]);

    private void WriteKind(Page page, bool isReads)
    {
        (bool IsReads, int AtOnce, IReadOnlyList<(Load Load, Waits.Disturbance Others)> Ways)[] points = [.. _points.Where(
            point => point.IsReads == isReads)];
        string what = isReads ? "Cold reads of 4 KiB" : "Durable flushes of 512 B";
        page.Paragraph($"**{what}**; other numbers at once are in [waits.csv](waits.csv).");
        page.Table(
            ["at once", "way", "a second", "against threads", "p99, ms", "work item, p99, ms"],
            points.Where(point => point.AtOnce == TargetCount).SelectMany(point => point.Ways.Select(way => (IReadOnlyList<string>)
            [
                point.AtOnce.ToString(CultureInfo.InvariantCulture),
                Figures.Emphasised(way.Load.Way),
                Figures.Count(way.Load.PerSecond.Median),
                Figures.Emphasised(way.Load.Way, Figures.Number(way.Load.Ratio.Median)),
                Figures.Number(way.Load.NinetyNinth / 1000),
                Figures.Number(way.Others.NinetyNinth),
            ])), texts: 2);
    }
}
