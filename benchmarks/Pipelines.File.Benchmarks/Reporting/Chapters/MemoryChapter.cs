using FilePipelinesBenchmarks.Charts;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Memory;
using FilePipelinesBenchmarks.Published;

namespace FilePipelinesBenchmarks.Reporting.Chapters;

/// <summary>Content that is built in memory.</summary>
internal sealed class MemoryChapter(ReportScale scale) : GridChapter(MakeSections(scale))
{
    private const string Own = "PooledMemoryStream";

    private const string Reason =
        "**Memory.** An array of 85,000 bytes and more is a large object, and the collector gives the pages of large objects back to the "
        + "system when none of them lives: where `ToArray` makes one of 100 kB to 1 MB again and again, fetching its pages anew is most of "
        + "the time, for every way. "
        + "`RecyclableMemoryStream` keeps its blocks among the large objects, which happens to keep pages there; this library's lie on the "
        + "pinned heap. Into a file, opening and closing it are most of the time for little content, and a writer's drain on another "
        + "thread is one more way there and back.";

    // FastStream's benchmark builds ten streams a run, too.
    private const int StreamsPerRun = 10;

    // FastStream's grids: bytes of each array, or of a double, and how many.
    private static readonly (int Size, int Writes)[] s_arrays =
    [
        (100, 10),
        (100, 100),
        (100, 1000),
        (100_000, 10),
        (100_000, 100),
        (100_000, 1000),
    ];
    private static readonly (int Size, int Writes)[] s_doubles = [(sizeof(double), 10), (sizeof(double), 100), (sizeof(double), 1000)];

    internal override string Title => "Memory";

    internal override IEnumerable<Headline> Headlines
        => [Headline.OfGrids("headline-memory", "Content built in memory, then ToArray", Own, [Bytes])];

    private SectionResult Bytes => Find("memory-bytes")!;

    private SectionResult Doubles => Find("memory-doubles")!;

    internal override void Write(Page page)
    {
        page.Paragraph(
            "Content is built in a stream in memory and taken out as an array: FastStream's benchmark of 2019, whose report of 2020 made "
            + "that 35 to 50 % faster with a third of the memory. Every way has a process of its own here, a new one every round, so that "
            + "none finds what another has left in the heap; one stream after the other is built until its pool, if it has one, and the "
            + "compiler are warm. `RecyclableMemoryStream` has its default options.");
        page.Picture(
            "memory.svg",
            BarChart.Draw(
                "Time of one stream",
                [.. Bytes.Points.Concat(Doubles.Points.Select(point => ($"{point.Point} doubles", point.Rows)))
                    .Select(point => new BarGroup(point.Item1, [.. point.Rows.Select(row =>
                        (row.Name, row.Microseconds.Median / StreamsPerRun, Figures.Time(row.Microseconds.Median / StreamsPerRun)))]))]),
            "Bars: time to build content in memory by each way");
        page.Paragraph(
            $"In the geometric mean of the points `PooledMemoryStream` takes **{Figures.Number(Mean(Bytes, Bytes.Baseline))}** of the time "
            + $"of `MemoryStream` and **{Figures.Number(Mean(Bytes, "RecyclableMemoryStream"))}** of that of `RecyclableMemoryStream`; "
            + $"for doubles, **{Figures.Number(Mean(Doubles, Doubles.Baseline))}** of `MemoryStream` with `BinaryWriter`.");
        page.Grid(Bytes);
        page.Grid(Doubles);
        WritePublished(page);
        page.Paragraph("Bytes that one stream allocates beside the array that `ToArray` returns:");
        WriteBeside(page, Bytes, scale.Points(s_arrays, 1, 4));
        WriteBeside(page, Doubles, scale.Points(s_doubles, 1));
        page.Paragraph(
            "Without an array: the same content copied from its stream into a new file, which is closed, and its length checked.");
        page.Grid(Find("memory-file")!);
    }

    private static void WritePublished(Page page)
    {
        page.Paragraph("Published in FastStream's readme (2019): the same doubles, against `MemoryStream` with `BinaryWriter` then.");
        page.Table(
            ["way", .. s_doubles.Select(point => Figures.Count(point.Writes)), "allocated"],
            PublishedBuild.FastStream2019.GroupBy(build => build.Way).Select((group, index) => (IReadOnlyList<string>)
            [
                group.Key,
                .. group.Select(build => index == 0 ? Figures.Time(build.Microseconds) : Figures.Number(
                    build.Microseconds / PublishedBuild.FastStream2019.First(other => other.Doubles == build.Doubles).Microseconds)),
                Figures.Amount(group.Select(build => build.AllocatedBytes)),
            ]));
    }

    private static void WriteBeside(Page page, SectionResult result, IReadOnlyList<(int Size, int Writes)> points)
    {
        page.Table(
            ["way", .. result.Points.Select(point => $"{point.Point}{(points[0].Size == sizeof(double) ? " doubles" : string.Empty)}")],
            result.Methods.Select(method => (IReadOnlyList<string>)[Figures.Emphasised(method), .. result.Of(method)
                .Select((measured, index) => Figures.Emphasised(method, SizeText.OfAmount(Beside(measured, points[index]))))]));

        // An array's header takes three words, and its end is rounded up to one.
        static double Beside(Measured measured, (int Size, int Writes) point)
            => Math.Max(0, (measured.AllocatedBytes / StreamsPerRun)
                - ((((long)point.Size * point.Writes) + (4 * sizeof(long)) - 1) / sizeof(long) * sizeof(long)));
    }

    private static double Mean(SectionResult result, string other)
        => Figures.GeometricMean(result.Of(Own).Zip(result.Of(other), (own, baseline) => own.Ratio.Median / baseline.Ratio.Median));

    private static List<ReportSection> MakeSections(ReportScale scale) =>
    [
        Built(scale, "memory-bytes", "Content of arrays built in memory, then ToArray", "writes × bytes",
            scale.Points(s_arrays, 1, 4), MemoryWays.Bytes, 45),
        Built(scale, "memory-doubles", "Content of doubles built in memory, then ToArray", "doubles",
            scale.Points(s_doubles, 1), MemoryWays.Doubles, 20),
        ToFile(scale),
    ];

    private static ReportSection Built(ReportScale scale, string key, string title, string axis,
        IReadOnlyList<(int Size, int Writes)> points, IReadOnlyList<MemoryWay> ways, double weight)
        => new(
            key,
            title,
            axis,
            weight,
            MeasurementOf(scale, key),
            Reason,
            _ => [.. points.Select(point => new Column(NameOf(point), [.. ways.Select(way =>
            {
                MemoryCase content = new(point.Size, point.Writes, StreamsPerRun);
                return new Candidate(way.Name, () => way.RunAsync(content));
            })]))])
        {
            Operations = StreamsPerRun,
        };

    private static ReportSection ToFile(ReportScale scale)
    {
        const string Key = "memory-file";
        return new ReportSection(
            Key,
            "Content of arrays built in memory, then CopyToAsync to a new file",
            "writes × bytes",
            30,
            MeasurementOf(scale, Key),
            Reason,
            folder => [.. scale.Points([s_arrays[0], s_arrays[2], s_arrays[4], s_arrays[5]], 2)
                .Select(point => new Column(NameOf(point), [.. MemoryWays.Files.Select(way =>
                {
                    MemoryCase content = new(point.Size, point.Writes, 1, folder.PathOf("content.bin"));
                    return new Candidate(way.Name, () => way.RunAsync(content), () => File.Delete(content.Path));
                })]))]);
    }

    // A process of its own for every sample is slow.
    private static ProcessMeasurement MeasurementOf(ReportScale scale, string key) => new(key, scale.IsQuick ? 1 : 3, 11);

    private static string NameOf((int Size, int Writes) point)
        => point.Size == sizeof(double) ? Figures.Count(point.Writes) : $"{Figures.Count(point.Writes)} × {Figures.Count(point.Size)} B";
}
