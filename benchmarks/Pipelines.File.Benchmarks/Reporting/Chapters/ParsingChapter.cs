using FilePipelinesBenchmarks.Charts;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Parsing;

namespace FilePipelinesBenchmarks.Reporting.Chapters;

/// <summary>Three parsers over every way to get at the lines of a file.</summary>
internal sealed class ParsingChapter(ReportScale scale)
    : GridChapter(
    [
        MakeSection<LineParser>(scale, "lines", "Lines counted", TextFile.MakeLines),
        MakeSection<NdjsonParser>(scale, "ndjson", "NDJSON deserialised", TextFile.MakeNdjson),
        MakeSection<CsvParser>(scale, "csv", "CSV parsed", TextFile.MakeCsv),
    ])
{
    private const long MiB = 1024 * 1024;

    internal override string Title => "Parsers";

    internal override IEnumerable<Headline> Headlines
        => [Headline.OfGrids("headline-lines", "Counting the lines of a file", "FilePipeReader.ReadLineBatchesAsync", [Grids[0]])];

    internal override void Write(Page page)
    {
        page.Paragraph("The same parser over every way to get at the lines; the limit is the same file already in memory. "
            + "`StreamReader` gives strings, as programs without pipelines use it.");
        page.Picture(
            "parsers.svg",
            BarChart.Draw($"Time for {SizeText.Of(scale.ParsedBytes)}, milliseconds",
                [.. Grids.Select(result => new BarGroup(result.Section.Title, [.. result.Points[0].Rows.Select(
                    row => (row.Name, row.Microseconds.Median, Figures.Time(row.Microseconds.Median)))]))]),
            "Bars: time to parse a file by each way");
        foreach (SectionResult result in Grids)
        {
            page.Grid(result);
        }
    }

    private static ReportSection MakeSection<TParser>(
        ReportScale scale, string key, string title, Func<TemporaryFolder, long, TextFile> make)
        where TParser : struct, ILineParser
        => new(
            key,
            $"{title}, {SizeText.Of(scale.ParsedBytes)}",
            "file",
            13,
            new PairedMeasurement(scale.MinRounds, 31, scale.Sample),
            "**Parsers.** Where parsing takes most of the time, all ways that give bytes are alike.",
            folder => [new Column(SizeText.Of(scale.ParsedBytes), ParseWays.Candidates<TParser>(make(folder, scale.ParsedBytes)))])
        {
            MakeWarmUp = folder => ParseWays.Candidates<TParser>(make(folder, MiB)),
        };
}
