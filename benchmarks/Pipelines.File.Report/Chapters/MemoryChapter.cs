namespace FilePipelines.Benchmarks.Reporting;

/// <summary>Content that is built in memory.</summary>
internal sealed class MemoryChapter(Scale scale) : GridChapter(Memory.Grids(scale))
{
    private const string Own = "PooledMemoryStream";

    internal override string Title => "Memory";

    internal override IEnumerable<Headline> Headlines
        => [Headline.OfGrids("headline-memory", "Content built in memory, then ToArray", Own, [Bytes])];

    private GridResult Bytes => Find("memory-bytes");

    private GridResult Doubles => Find("memory-doubles");

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
                        (row.Name, OfOne(row), Figures.Time(OfOne(row))))]))]),
            "Bars: time to build content in memory by each way");
        page.Paragraph(
            $"In the geometric mean of the points `PooledMemoryStream` takes **{Figures.Number(Mean(Bytes, Bytes.Baseline))}** of the time "
            + $"of `MemoryStream` and **{Figures.Number(Mean(Bytes, "RecyclableMemoryStream"))}** of that of `RecyclableMemoryStream`; "
            + $"for doubles, **{Figures.Number(Mean(Doubles, Doubles.Baseline))}** of `MemoryStream` with `BinaryWriter`.");
        page.Grid(Bytes);
        page.Grid(Doubles);
        WritePublished(page);
        page.Paragraph("Bytes that one stream allocates beside the array that `ToArray` returns:");
        WriteBeside(page, Bytes, scale.Points(Memory.Arrays, 1, 4));
        WriteBeside(page, Doubles, scale.Points(Memory.DoubleCounts, 1));
        page.Paragraph(
            "Without an array: the same content copied from its stream into a new file, which is closed, and its length checked.");
        page.Grid(Find("memory-file"));
    }

    private static void WritePublished(Page page)
    {
        page.Paragraph("Published in FastStream's readme (2019): the same doubles, against `MemoryStream` with `BinaryWriter` then.");
        page.Table(
            ["way", .. Memory.DoubleCounts.Select(point => Figures.Count(point.Writes)), "allocated"],
            PublishedBuild.FastStream2019.GroupBy(build => build.Way).Select((group, index) => (IReadOnlyList<string>)
            [
                group.Key,
                .. group.Select(build => index == 0 ? Figures.Time(build.Microseconds) : Figures.Number(
                    build.Microseconds / PublishedBuild.FastStream2019.First(other => other.Doubles == build.Doubles).Microseconds)),
                Figures.Amount(group.Select(build => build.AllocatedBytes)),
            ]));
    }

    private static void WriteBeside(Page page, GridResult result, IReadOnlyList<(int Size, int Writes)> points)
    {
        page.Table(
            ["way", .. result.Points.Select(point => $"{point.Point}{(points[0].Size == sizeof(double) ? " doubles" : string.Empty)}")],
            result.Methods.Select(method => (IReadOnlyList<string>)[Figures.Emphasised(method), .. result.Of(method)
                .Select((measured, index) => Figures.Emphasised(method, SizeText.OfAmount(Beside(measured, points[index]))))]));

        // An array's header takes three words, and its end is rounded up to one.
        static double Beside(Measured measured, (int Size, int Writes) point)
            => Math.Max(0, (measured.AllocatedBytes / Memory.StreamsPerRun)
                - ((((long)point.Size * point.Writes) + (4 * sizeof(long)) - 1) / sizeof(long) * sizeof(long)));
    }

    private static double OfOne(Measured row) => row.Microseconds.Median / Memory.StreamsPerRun;

    private static double Mean(GridResult result, string other)
        => Figures.GeometricMean(result.Of(Own).Zip(result.Of(other), (own, baseline) => own.Ratio.Median / baseline.Ratio.Median));
}
