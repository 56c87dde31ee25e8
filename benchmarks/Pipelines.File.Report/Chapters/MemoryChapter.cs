namespace FilePipelines.Benchmarks.Reporting;

/// <summary>Content that is built in memory.</summary>
internal sealed class MemoryChapter(Scale scale) : GridChapter("Memory", Memory.Grids(scale))
{
    private const string Own = "PooledMemoryStream";

    private GridResult Bytes => Find("memory-bytes");
    private GridResult Doubles => Find("memory-doubles");

    internal override IEnumerable<Headline> Headlines
        => [Headline.OfGrids("headline-memory", "Content built in memory, then ToArray (each way in a process of its own)", Own, [Bytes])];

    internal override void Write(Page page)
    {
        page.Paragraph(
            "Content is built in a stream in memory and taken out as an array: FastStream's benchmark of 2019. Every way has a new process "
            + "every round, because what one leaves in the heap changes the next. `RecyclableMemoryStream` has its default options.");
        page.Picture(
            "memory.svg",
            BarChart.Draw(
                "Time of one stream",
                [.. Bytes.Points.Concat(Doubles.Points.Select(point => ($"{point.Point} doubles", point.Rows)))
                    .Select(point => new BarGroup(point.Item1, [.. point.Rows.Select(row =>
                        (row.Name, OfOne(row), Figures.Time(OfOne(row))))]))]),
            "Bars: time to build content in memory by each way");
        page.Paragraph(
            $"In the geometric mean of the points `PooledMemoryStream` takes **{Mean(Bytes, Bytes.Baseline)}** of the time "
            + $"of `MemoryStream` and **{Mean(Bytes, "RecyclableMemoryStream")}** of that of `RecyclableMemoryStream`; "
            + $"for doubles, **{Mean(Doubles, Doubles.Baseline)}** of `MemoryStream` with `BinaryWriter`.");
        page.Grid(Bytes);
        page.Grid(Doubles);
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

    private static double OfOne(Measured row) => row.Microseconds.Median / Memory.StreamsPerRun;
    private static string Mean(GridResult result, string other) => Figures.Number(Figures.GeometricMean(result.Against(Own, other)));
}
