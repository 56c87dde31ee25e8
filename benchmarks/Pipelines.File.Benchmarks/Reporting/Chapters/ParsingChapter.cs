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
        LinesByLength(scale, "lines-bytes", "Lines as bytes", LineWays.Bytes),
        LinesByLength(scale, "lines-text", "Lines as strings", LineWays.Strings),
        Counts(scale),
        Searches(scale),
        Records(scale),
    ])
{
    private const long MiB = 1024 * 1024;
    private const int Parsers = 3;

    private static readonly int[] s_lineLengths = [10, 30, 100, 1000];

    internal override string Title => "Parsers";

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfGrids("headline-lines", "Lines of 10 to 1,000 B, as bytes", ParseWays.ReadLineBatchesAsync.Name, [Find("lines-bytes")!]),
        Headline.OfGrids("headline-text", "Lines of 10 to 1,000 B, as strings", "ReadLinesAsync", [Find("lines-text")!]),
        Headline.OfGrids("headline-counts", "Counting lines", "FilePipeReader, batch.Count", [Find("counts")!]),
        Headline.OfGrids("headline-searches", "Lines that contain a word, counted", "FilePipeReader, batches, IndexOf",
            [Find("searches")!]),
        Headline.OfGrids("headline-records", "Records of 46 B with their length before them", "ReadRecordBatchesAsync", [Find("records")!]),
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("The same parser over every way to get at the lines; the limit is the same file already in memory. "
            + "`StreamReader` gives strings, as programs without pipelines use it.");
        page.Picture(
            "parsers.svg",
            BarChart.Draw($"Time for {SizeText.Of(scale.ParsedBytes)}, milliseconds",
                [.. Grids.Take(Parsers).Select(result => new BarGroup(result.Section.Title, [.. result.Points[0].Rows.Select(
                    row => (row.Name, row.Microseconds.Median, Figures.Time(row.Microseconds.Median)))]))]),
            "Bars: time to parse a file by each way");
        foreach (SectionResult result in Grids)
        {
            page.Grid(result);
        }
    }

    /// <summary>Each of the ways over files of longer and longer lines, whose lengths are added up.</summary>
    internal static ReportSection LinesByLength(ReportScale scale, string key, string title, IReadOnlyList<ParseWay> ways)
        => new(
            key,
            $"{title}, {SizeText.Of(scale.ParsedBytes)}",
            "length of a line",
            10,
            new PairedMeasurement(scale.MinRounds, 15, scale.Sample),
            "**Lines.** Long lines are found as fast as the file is read, by hand and here; the shorter they are, the more a batch saves.",
            folder => [.. s_lineLengths.Select(
                length => new Column($"{Figures.Count(length)} B", CandidatesFor(folder, ways, scale, length)))])
        {
            MakeWarmUp = folder => [.. ways.Select(way => WayOver(way, TextFile.MakeNumbers<LineParser>(folder, MiB, lineLength: 99)))],
        };

    private static IReadOnlyList<Candidate> CandidatesFor(
        TemporaryFolder folder, IReadOnlyList<ParseWay> ways, ReportScale scale, int length)
    {
        TextFile file = TextFile.MakeNumbers<LineParser>(folder, scale.ParsedBytes, length);
        return [.. ways.Select(way => WayOver(way, file))];
    }

    private static Candidate WayOver(ParseWay way, TextFile file) => new(way.Name, () => way.ParseAsync<LineParser>(file));

    /// <summary>How many lines a file has, and nothing else.</summary>
    internal static ReportSection Counts(ReportScale scale)
        => new(
            "counts",
            $"Lines of 13 B counted, {SizeText.Of(scale.CountedBytes)}; the programs with their start, and without their CPU time",
            "file",
            6,
            new PairedMeasurement(scale.MinRounds, 15, scale.Sample),
            "**Counting.** A batch finds where each line ends; who only counts needs less.",
            folder => [new Column(SizeText.Of(scale.CountedBytes), CountWays.Candidates(folder, scale.CountedBytes))]);

    /// <summary>How many lines contain a word.</summary>
    internal static ReportSection Searches(ReportScale scale)
        => new(
            "searches",
            $"Lines of 100 B that contain a word, {SizeText.Of(scale.CountedBytes)}; the program with its start, and without its CPU time",
            "file",
            8,
            new PairedMeasurement(scale.MinRounds, 15, scale.Sample),
            "**Searching.** ripgrep searches the whole buffer, and looks for the ends of lines only around what it has found.",
            folder => [new Column(SizeText.Of(scale.CountedBytes), CountWays.SearchCandidates(folder, scale.CountedBytes))]);

    /// <summary>Records with their length in front.</summary>
    internal static ReportSection Records(ReportScale scale)
        => new(
            "records",
            $"{Figures.Count(scale.Records)} records of 46 B, a sum over each",
            "file",
            8,
            new PairedMeasurement(scale.MinRounds, 15, scale.Sample),
            "**Records.** A parser is a delegate, so a call for each record, which a loop by hand does not make.",
            folder => [new Column("46 B", RecordWays.Candidates(RecordWays.Make(folder, scale.Records)))]);

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
