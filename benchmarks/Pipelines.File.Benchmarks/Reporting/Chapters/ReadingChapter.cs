using FilePipelinesBenchmarks.Charts;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Published;
using FilePipelinesBenchmarks.Reading;

namespace FilePipelinesBenchmarks.Reporting.Chapters;

/// <summary>The grid of 2019, and the same with every byte touched.</summary>
internal sealed class ReadingChapter(ReportScale scale) : GridChapter(MakeSections(scale))
{
    private const long MiB = 1024 * 1024;
    private const string Own = "FilePipeReader";

    // The grid of 2019 has FileOptions.Asynchronous, too, which changes nothing for the ways that win or lose here: BenchmarkDotNet's suite
    // has it.
    private static readonly int[] s_mebibytes = [4, 128];
    private static readonly int[] s_bufferSizes = [2048, 4096, 16384, 65536, 262144];

    internal override string Title => "Reading: the grid of 2019";

    internal override IEnumerable<Headline> Headlines => [
        Headline.OfGrids("headline-reading", "Reading, the same buffer of 2 to 256 KiB for all", Own, [.. s_mebibytes.Select(ResultOf)]),
        FromTheCopy(),
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("A file of incrementing 64-bit integers is opened, read to its end and closed; the last eight bytes of every buffer "
            + "are looked at, and have to be the integer that stands there. Dashed, faint lines are the figures of 2019 (Windows 10, .NET "
            + "Core 2.1); the pale stroke behind a dot spans the quartiles. `MemoryMappedPipeReader` is favoured here: "
            + "of a buffer of 256 KiB it touches one page, where every other way has brought all of it.");
        WriteMeans(page);
        foreach (int mebibytes in s_mebibytes)
        {
            page.Lines(ResultOf(mebibytes), s_bufferSizes, LinesOf2019(mebibytes));
            page.Grid(ResultOf(mebibytes));
        }

        page.Heading(3, "Every byte touched");
        page.Paragraph("The same, but the program adds up all the integers, a vector at a time. Where a call brings more than a core's "
            + "cache holds, the sum has to fetch the bytes again. `MemoryMappedFile` is here and not above, where it would look at one "
            + "page of each buffer and leave the others alone.");
        foreach (SectionResult result in Grids.Where(result => result.Section.Key.StartsWith("sum-", StringComparison.Ordinal)))
        {
            page.Grid(result);
        }

        page.Heading(3, "Allocation");
        int middle = Array.IndexOf(s_bufferSizes, 16384);
        page.Picture(
            "allocation.svg",
            BarChart.Draw(
                "Allocated for one file with buffers of 16 KiB, by the whole process (logarithmic)",
                [.. s_mebibytes.Select(ResultOf).Select(result => new BarGroup(result.Section.Title,
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
            ResultOf(s_mebibytes[0]).Methods.Select(method => (IReadOnlyList<string>)
            [
                Figures.Emphasised(method),
                Past(method),
                Figures.Emphasised(method, Figures.Number(Mean(method))),
                Figures.Amount(ResultOf(s_mebibytes[0]).Of(method).Select(measured => measured.AllocatedBytes)),
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
        SectionResult[] results = [.. s_mebibytes.Select(ResultOf)];
        (string Way, double Mean)[] means =
        [
            .. results[0].Methods.Select(way => (way, Figures.GeometricMean(results.SelectMany(
                result => result.Of(way).Zip(result.Of(ReadWays.KernelCopyName), (own, copy) => own.Ratio.Median / copy.Ratio.Median))))),
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

    private SectionResult ResultOf(int mebibytes) => Find(KeyOf(mebibytes))!;

    private double Mean(string method)
        => Figures.GeometricMean(
            s_mebibytes.SelectMany(mebibytes => ResultOf(mebibytes).Of(method)).Select(measured => measured.Ratio.Median));

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

    private static string KeyOf(int mebibytes) => $"read-{mebibytes}";

    private static List<ReportSection> MakeSections(ReportScale scale) =>
    [
        .. s_mebibytes.Select(mebibytes => Section<LastEightBytes>(
            scale, KeyOf(mebibytes), string.Empty, mebibytes, ReadWays.All, mebibytes == 4 ? 16 : 45)),
        Section<Int64Sum>(scale, "sum-4", ", every byte summed", 4, [.. ReadWays.All, ReadWays.MemoryMapped], 12),
    ];

    private static ReportSection Section<TWork>(
        ReportScale scale, string key, string work, int mebibytes, IReadOnlyList<ReadWay> ways, double weight)
        where TWork : struct, IBufferWork
    {
        return new ReportSection(
            key,
            $"Reading {mebibytes} MiB{work}, SequentialScan",
            "buffer size",
            weight,
            new PairedMeasurement(scale.MinRounds, 31, scale.Sample),
            "**Reading.** With buffers of 64 and 256 KiB the copy out of the page cache is nearly all of the time, the same for every way, "
            + "and there are few calls left to save: `pread(2)` alone is no faster. What is left is luck with the alignment of an array, "
            + "and the cache: a `FilePipeReader` brings up to 256 KiB a call, and a program that touches every byte finds part of that in "
            + "the L2 cache no longer. **Read-ahead** copies on a second core, and the program then fetches the bytes from there: "
            + "it pays where the program has work to do meanwhile or the file is not in the page cache, and costs where neither is so. "
            + "**A mapping** copies nothing; the section on it says when that is faster, and what it costs.",
            folder =>
            {
                IntegerFile file = IntegerFile.Make(folder, mebibytes * MiB);
                return [.. s_bufferSizes.Select(size => new Column(SizeText.Of(size), CandidatesFor(file, size)))];
            })
        {
            MakeWarmUp = key == KeyOf(s_mebibytes[0]) ? folder => CandidatesFor(IntegerFile.Make(folder, 4 * MiB), 4096) : null,
            IsWarm = key != KeyOf(s_mebibytes[0]),
        };

        IReadOnlyList<Candidate> CandidatesFor(IntegerFile file, int size)
            => [.. ways.Select(way => new Candidate(
                way.Name, () => way.ReadAsync<TWork>(new ReadCase(file, size, FileOptions.SequentialScan))))];
    }
}
