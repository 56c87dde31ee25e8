namespace FilePipelines.Benchmarks.Reporting;

/// <summary>The grid of 2019, and the same with every byte touched.</summary>
internal sealed class ReadingChapter(Scale scale) : GridChapter(Reading.Of2019(scale))
{
    private const string Own = "FilePipeReader";

    internal override string Title => "Reading: the grid of 2019";

    internal override IEnumerable<Headline> Headlines => [
        Headline.OfGrids("headline-reading", "Reading with buffers of 2 to 256 KiB (a read brings 256 KiB here, whatever the buffer)", Own,
            [.. Reading.GridMebibytes.Select(ResultOf)]),
        Headline.OfGrids("headline-reading-256", "Reading, 256 KiB for all", Own,
            [.. Reading.GridMebibytes.Select(ResultOf).Select(LargestBuffer)]),
        Headline.OfGrids("headline-copy", "Reading, against the kernel's bare copy", Own,
            [.. Reading.GridMebibytes.Select(ResultOf)], Reading.KernelCopyName) with { IsAside = true },
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("A file of incrementing 64-bit integers is opened, read to its end and closed; the last eight bytes of every buffer "
            + "are looked at, and have to be the integer that stands there. Dashed, faint lines are the figures of 2019 (Windows 10, .NET "
            + "Core 2.1); the pale stroke behind a dot spans the quartiles. `MemoryMappedPipeReader` is favoured here: "
            + "of a buffer of 256 KiB it touches one page, where every other way has brought all of it.");
        WriteMeans(page);
        foreach (int mebibytes in Reading.GridMebibytes)
        {
            page.Lines(ResultOf(mebibytes), Reading.GridSizes, LinesOf2019(mebibytes));
        }

        page.Paragraph("The same with every byte summed is in [figures.csv](figures.csv).");
    }

    // The geometric means of every way, beside those of 2019.
    private void WriteMeans(Page page)
    {
        page.Paragraph($"In 2019 the benchmark report of Pipelines.File.Unofficial concluded that no file pipeline is worth having: "
            + $"its adapters cost {Figures.Number(Mean2019("PipelineAdapter"))} times a synchronous `FileStream` in "
            + $"the geometric mean of this grid, its native reader {Figures.Number(Mean2019("PipelineNative"))} "
            + $"times. On .NET {Environment.Version.Major} `FilePipeReader` takes **{Figures.Number(Mean(Own))}**.");
        page.Paragraph("Time against `FileStreamSync`, geometric mean of ten points (five buffer sizes, 4 and 128 MiB, "
            + "`FileOptions.SequentialScan`). Less than 1 is faster.");
        page.Table(
            ["way", "2019", "now", "now, allocated"],
            ResultOf(Reading.GridMebibytes[0]).Methods.Select(method => (IReadOnlyList<string>)
            [
                Figures.Emphasised(method),
                Past(method),
                Figures.Emphasised(method, Figures.Number(Mean(method))),
                Figures.Amount(ResultOf(Reading.GridMebibytes[0]).Of(method).Select(measured => measured.AllocatedBytes)),
            ]));
        page.Paragraph("What is allocated for one file depends on the buffer size for some: the least and the most of five are given. "
            + "`pread(2)` is the limit of one call a buffer, with nothing of .NET between.");

        static string Past(string method) => method switch
        {
            "FileStreamAsync" => Figures.Number(Mean2019("FileStreamAsync")),
            "FileStream to Pipe" => Figures.Number(Mean2019("PipelineAdapter")),
            "StreamConnection.GetReader" => Figures.Number(Mean2019("PipelineAdapter2")),
            "Nerdbank UsePipeReader" => Figures.Number(Mean2019("PipelineAdapter3")),
            "FileStreamSync" => "1",
            Own => $"{Figures.Number(Mean2019("PipelineNative"))} (its native reader)",
            _ => string.Empty,
        };
    }

    // Without the way that touches one page of such a buffer, and leaves the others alone.
    private static GridResult LargestBuffer(GridResult result)
        => new(result.Grid, [(result.Points[^1].Point, [.. result.Points[^1].Rows.Where(
            row => row.Name != ReadWays<LastEightBytes>.MappedPipeReader.Name)])]);

    private GridResult ResultOf(int mebibytes) => Find($"read-{mebibytes}")!;

    private double Mean(string method)
        => Figures.GeometricMean(
            Reading.GridMebibytes.SelectMany(mebibytes => ResultOf(mebibytes).Of(method)).Select(measured => measured.Ratio.Median));

    private static double Mean2019(string method)
        => Figures.GeometricMean(
            PublishedRatio.ReadGrid2019.Where(ratio => ratio.Method == method && !ratio.IsAsynchronous).Select(ratio => ratio.Ratio));

    // Two adapters of 2019 differ by nothing that can be seen: one of them is drawn.
    private static IEnumerable<LineSeries> LinesOf2019(int mebibytes)
        => PublishedRatio.ReadGrid2019
            .Where(ratio => ratio.MiB == mebibytes && !ratio.IsAsynchronous)
            .GroupBy(ratio => ratio.Method)
            .Where(group => group.Key != "PipelineAdapter3")
            .Select(group => new LineSeries(
                group.Key switch
                {
                    "PipelineNative" => "2019: native reader",
                    "PipelineAdapter" => "2019: FileStream to Pipe",
                    "PipelineAdapter2" => "2019: GetReader(stream)",
                    _ => $"2019: {group.Key}",
                },
                [.. group.OrderBy(ratio => ratio.BufferSize).Select(ratio => ((double)ratio.BufferSize, Spread.Of([ratio.Ratio])))],
                IsFaint: true));
}
