namespace FilePipelines.Benchmarks.Reporting;

/// <summary>The grid of 2019, and the same with every byte touched.</summary>
internal sealed class ReadingChapter(Scale scale) : GridChapter("Reading: the grid of 2019", Reading.Of2019(scale))
{
    private const string Own = "FilePipeReader";

    private GridResult[] Grids => [.. Reading.GridMebibytes.Select(mebibytes => Find($"read-{mebibytes}"))];

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfGrids("headline-reading", "Reading with buffers of 2 to 256 KiB", Own, Grids),
        Headline.OfGrids("headline-reading-256", "Reading, 256 KiB for all", Own, [.. Grids.Select(grid => grid.Last)]),
        Headline.OfGrids("headline-copy", "Reading, against the kernel's bare copy", Own, Grids, Reading.KernelCopyName)
            with { IsAside = true },
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("A file of incrementing 64-bit integers is opened, read to its end and closed; the last eight bytes of every buffer "
            + "are looked at, and have to be the integer that stands there. A read of `FilePipeReader` brings 256 KiB at least. Dashed, "
            + "faint lines are the figures of 2019 (Windows 10, .NET Core 2.1); the pale stroke behind a dot spans the quartiles.");
        page.Paragraph("In 2019 the report of Pipelines.File.Unofficial concluded that no file pipeline is worth having: its adapters "
            + $"cost {Figures.Number(Mean2019("PipelineAdapter"))} times a synchronous `FileStream`, its native reader "
            + $"{Figures.Number(Mean2019("PipelineNative"))} times. On .NET {Environment.Version.Major} `FilePipeReader` takes "
            + $"**{Figures.Number(Mean(Own))}**.");
        page.Paragraph("Time against `FileStreamSync`, geometric mean of ten points (five buffer sizes, 4 and 128 MiB, "
            + "`FileOptions.SequentialScan`), and what is allocated for one file of 4 MiB: the least and the most of five buffer sizes.");
        page.Table(
            ["way", "2019", "now", "now, allocated"],
            Grids[0].Methods.Select(method => (IReadOnlyList<string>)
            [
                Figures.Emphasised(method),
                Past(method),
                Figures.Emphasised(method, Figures.Number(Mean(method))),
                Figures.Amount(Grids[0].Of(method).Select(measured => measured.AllocatedBytes)),
            ]));
        page.Paragraph("`pread(2)` is the limit of one call a buffer, with nothing of .NET between.");
        foreach (int mebibytes in Reading.GridMebibytes)
        {
            page.Lines(Find($"read-{mebibytes}"), Reading.GridSizes, LinesOf2019(mebibytes));
        }

        page.Paragraph("The same with every byte summed is in [figures.csv](figures.csv).");

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

    private double Mean(string method)
        => Figures.GeometricMean(Grids.SelectMany(grid => grid.Of(method)).Select(measured => measured.Ratio.Median));

    private static double Mean2019(string method)
        => Figures.GeometricMean(PublishedRatio.ReadGrid2019.Where(ratio => ratio.Method == method).Select(ratio => ratio.Ratio));

    // Two adapters of 2019 differ by nothing that can be seen: one of them is drawn.
    private static IEnumerable<LineSeries> LinesOf2019(int mebibytes)
        => PublishedRatio.ReadGrid2019.Where(ratio => ratio.MiB == mebibytes && ratio.Method != "PipelineAdapter3")
            .GroupBy(ratio => ratio.Method)
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

/// <summary>A mapped file against the ways that copy, for both ways in which the page cache may hold it.</summary>
internal sealed class MappingChapter(Scale scale) : GridChapter("Memory mapping", [Reading.Mapping(scale)])
{
    internal override IEnumerable<Headline> Headlines
        => [Headline.OfGrids("headline-mapping", "Reading, every byte looked at, with mappings", "FilePipeReader", Results)];

    internal override void Write(Page page)
    {
        page.Paragraph("A mapping copies nothing. Whether it is faster depends on how the page cache holds the file: one that was written "
            + "in large pieces lies in large folios, one that was written a page at a time, as logs are, in small ones. A program cannot "
            + "see which it has.");
        base.Write(page);
        page.Paragraph("**A file that is truncated while it is mapped kills the process** (SIGBUS). A `FilePipeReader` "
            + "ends at the new end. A page that is not cached blocks the thread that touches it; pipes, devices and /proc "
            + "cannot be mapped.");
    }
}
