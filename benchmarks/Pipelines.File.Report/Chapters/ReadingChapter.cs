namespace FilePipelines.Benchmarks.Reporting;

/// <summary>The grid of 2019, and the same with every byte touched.</summary>
internal sealed class ReadingChapter(Scale scale) : GridChapter(Reading.Of2019(scale))
{
    private const string Own = "FilePipeReader";

    internal override string Title => "Reading: the grid of 2019";

    internal override IEnumerable<Headline> Headlines => [
        Headline.OfGrids("headline-reading", "Reading, the same buffer of 2 to 256 KiB for all", Own,
            [.. Reading.GridMebibytes.Select(ResultOf)]),
        FromTheCopy(),
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
            page.Grid(ResultOf(mebibytes));
        }

        page.Heading(3, "Every byte touched");
        page.Paragraph("The same, but the program adds up all the integers, a vector at a time. Where a call brings more than a core's "
            + "cache holds, the sum has to fetch the bytes again. `MemoryMappedFile` is here and not above, where it would look at one "
            + "page of each buffer and leave the others alone.");
        foreach (GridResult result in Results.Where(result => result.Grid.Key.StartsWith("sum-", StringComparison.Ordinal)))
        {
            page.Grid(result);
        }

        page.Heading(3, "Allocation");
        int middle = ResultOf(Reading.GridMebibytes[0]).Points.Index().First(point => point.Item.Point == "16 KiB").Index;
        page.Picture(
            "allocation.svg",
            BarChart.Draw(
                "Allocated for one file with buffers of 16 KiB, by the whole process (logarithmic)",
                [.. Reading.GridMebibytes.Select(ResultOf).Select(result => new BarGroup(result.Grid.Title,
                    [.. result.Points[middle].Rows.Select(row => (row.Name, row.AllocatedBytes, SizeText.OfAmount(row.AllocatedBytes)))]))],
                logarithmicFrom: 50),
            "Bars: bytes allocated for one file by each way to read");
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

    // The kernel's copy by itself is the same work on every machine, where FileStream's calls and copies cost differently.
    private Headline FromTheCopy()
    {
        GridResult[] results = [.. Reading.GridMebibytes.Select(ResultOf)];
        (string Way, double Mean)[] means =
        [
            .. results[0].Methods.Select(way => (way, Figures.GeometricMean(results.SelectMany(
                result => result.Of(way).Zip(result.Of(Reading.KernelCopyName), (own, copy) => own.Ratio.Median / copy.Ratio.Median))))),
        ];
        return new Headline(
            "headline-copy",
            "Reading, against the kernel's bare copy",
            $"time against it, geometric mean of {results.Sum(result => result.Points.Count)} points",
            IsRate: false,
            [
                .. new[] { Origin.Own, Origin.ByHand, Origin.Net, Origin.Other }
                    .Select(origin => means.Where(mean => origin == Origin.Own ? mean.Way == Own : Origins.Of(mean.Way) == origin)
                        .OrderBy(mean => mean.Mean).FirstOrDefault())
                    .Where(mean => mean.Way is not null)
                    .Select(mean => new HeadlineBar(Origins.Of(mean.Way), mean.Way, mean.Mean, Figures.Number(mean.Mean))),
            ],
            results.Sum(result => result.Points.Count),
            [])
        {
            IsAside = true,
        };
    }

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
