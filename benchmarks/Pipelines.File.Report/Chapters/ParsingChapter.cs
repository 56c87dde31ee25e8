namespace FilePipelines.Benchmarks.Reporting;

/// <summary>Three parsers over every way to get at the lines of a file.</summary>
internal sealed class ParsingChapter(Scale scale) : GridChapter("Parsers",
[
    .. Lines.Parsers(scale), .. Lines.ByLength(scale), Counting.Counts(scale), Counting.Searches(scale), Records.Grid(scale),
])
{
    private const int Parsers = 3;

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfGrids("headline-lines", "Lines of 10 to 1,000 B, as bytes", LineWays<LineParser>.Batches.Name, [Find("lines-bytes")]),
        Headline.OfGrids("headline-text", "Lines of 10 to 1,000 B, as strings", "ReadLinesAsync", [Find("lines-text")]),
        Headline.OfGrids("headline-counts", "Counting lines", "FilePipeReader, batch.Count", [Find("counts")]),
        Headline.OfGrids("headline-searches", "Lines that contain a word, counted", "FilePipeReader, batches, IndexOf",
            [Find("searches")]),
        Headline.OfGrids("headline-records", "Records of 46 B with their length before them", "ReadRecordBatchesAsync, a struct",
            [Find("records")]),
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("The same parser over every way to get at the lines; the limit is the same file already in memory.");
        page.Picture(
            "parsers.svg", BarChart.Draw($"Time for {SizeText.Of(scale.ParsedBytes)}, milliseconds",
                [.. Results.Take(Parsers).Select(result => new BarGroup(result.Grid.Title, [.. result.Points[0].Rows.Select(
                    row => (row.Name, row.Microseconds.Median, Figures.Time(row.Microseconds.Median)))]))]),
            "Bars: time to parse a file by each way");
        foreach (GridResult result in Results.Skip(Parsers).Where(result => result.Points.Count > 1 || result.Grid.Key == "records"))
        {
            page.Grid(result);
        }
    }
}
