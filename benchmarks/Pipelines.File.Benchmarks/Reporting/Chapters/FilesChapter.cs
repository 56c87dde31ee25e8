using FilePipelinesBenchmarks.Cold;
using FilePipelinesBenchmarks.Copying;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Reading;
using FilePipelinesBenchmarks.SmallFiles;
using FilePipelinesBenchmarks.Writing;

namespace FilePipelinesBenchmarks.Reporting.Chapters;

/// <summary>Copies, many small files, and a large one from the device.</summary>
internal sealed class FilesChapter(ReportScale scale) : GridChapter(MakeSections(scale))
{
    private const long MiB = 1024 * 1024;

    private static readonly int[] s_coldSizes = [4096, 65536];
    private static readonly long[] s_copiedMebibytes = [1, 128];
    private static readonly (int Minimum, int Maximum)[] s_smallLengths = [(4096, 4096), (1024, 16384)];

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfGrids("headline-copying", "Copying one file to a new one", "FilePipeReader to FilePipeWriter", [Find("copy")!]),
        Headline.OfGrids("headline-trees", "Copying a folder of small files with SHA-256, 2 at once", "samples/Copy --sha256 --jobs 2",
            [Find("trees")!]),
        Headline.OfGrids("headline-compress", "Compressing into a file", "FilePipeWriter.AsStream, gzip", [Find("compress")!]),
    ];

    internal override string Title => "Copying, compressing, small files, a large file from the device";

    internal override void Write(Page page)
    {
        foreach (SectionResult result in Grids)
        {
            page.Grid(result);
        }
    }

    private static List<ReportSection> MakeSections(ReportScale scale)
        => [Copy(scale), Trees(scale), Compress(scale), Small(scale),
            .. PageCache.IsSupported ? (ReportSection[])[ColdSequential(scale)] : []];

    private static ReportSection Copy(ReportScale scale)
        => new(
            "copy",
            "Copying a file to a new one",
            "length",
            16,
            new PairedMeasurement(scale.MinRounds, 31, scale.Sample / 2, maxRuns: 20),
            "**Copying.** What the reader has read is copied into the writer's segments, and the writer writes them on another thread, so "
            + "a small file pays for the way there and back. `File.Copy` lets the kernel copy, and on a file system that can share blocks "
            + "nothing is copied at all. Through memory, every byte is copied three times.",
            folder => [.. scale.Points(s_copiedMebibytes, 0).Select(mebibytes =>
            {
                IntegerFile source = IntegerFile.Make(folder, mebibytes * MiB);
                string destination = folder.PathOf("copy.bin");
                return new Column($"{mebibytes} MiB", [.. CopyWays.All.Select(way =>
                    new Candidate(way.Name, () => way.RunAsync(source.Path, destination, source.Length), () => File.Delete(destination)))]);
            })]);

    internal static ReportSection Trees(ReportScale scale)
    {
        int count = scale.IsQuick ? 200 : 1000;
        return new ReportSection(
            "trees",
            $"A folder of {Figures.Count(count)} files of 1 to 64 KiB, copied with the SHA-256 of each",
            "folder",
            12,
            new PairedMeasurement(scale.MinRounds, 15, TimeSpan.FromMilliseconds(1)),
            "**Folders.** samples/Copy gives each file its name when it is whole; File.Copy writes under the name.",
            folder =>
            {
                string source = folder.PathOf("source");
                long bytes = TreeWays.Make(source, count, mostSize: 64 * 1024);
                return [new Column($"{Figures.Count(count)} files", TreeWays.Candidates(source, folder.PathOf("destination"), bytes))];
            })
        {
            IsWarm = true,
        };
    }

    internal static ReportSection Compress(ReportScale scale)
        => new(
            "compress",
            $"{SizeText.Of(scale.CompressedBytes)} of text through a GZipStream into a file; CPU time is in figures.csv",
            "length",
            6,
            new PairedMeasurement(scale.MinRounds, 15, TimeSpan.FromMilliseconds(1)),
            "**Compressing.** GZipStream writes pieces of 8 KiB, and the compressor takes nearly all of the time.",
            folder => [new Column(SizeText.Of(scale.CompressedBytes), CompressWays.Candidates(folder, scale.CompressedBytes))])
        {
            IsWarm = true,
        };

    private static ReportSection Small(ReportScale scale)
    {
        int count = scale.IsQuick ? 500 : 2000;
        return new ReportSection(
            "small",
            $"One of {Figures.Count(count)} small files, opened, read and closed one after the other",
            "length",
            14,
            new PairedMeasurement(scale.MinRounds, 31, scale.Sample),
            "**Small files.** Nearly all of it is open and close, which every way needs; the rest is noise of about a microsecond.",
            folder => [.. s_smallLengths.Select(lengths =>
            {
                (int minimum, int maximum) = lengths;
                SmallFileSet files = SmallFileSet.Make(folder, count, minimum, maximum);
                string name = minimum == maximum ? SizeText.Of(minimum) : $"{minimum / 1024} to {SizeText.Of(maximum)}";
                return new Column(name, [.. SmallFileWays.All.Select(way => new Candidate(way.Name, () => way.ReadAllAsync(files)))]);
            })])
        {
            Operations = count,
        };
    }

    private static ReportSection ColdSequential(ReportScale scale)
        => new(
            "cold-sequential",
            $"Reading {SizeText.Of(scale.ColdBytes)} that the page cache does not hold",
            "buffer size",
            16,
            new PairedMeasurement(scale.MinRounds, 15, TimeSpan.FromMilliseconds(1)),
            "**Cold, sequential.** The kernel reads ahead for every way, and the device decides; its spread is as wide as the difference.",
            folder =>
            {
                PageCache.TouchMemory(folder);
                IntegerFile file = IntegerFile.Make(folder, scale.ColdBytes);
                ReadWay[] ways =
                [
                    ReadWays.FileStreamSync, ReadWays.FileStreamAsync, ReadWays.PipeReaderCreate, ReadWays.FilePipeReader,
                    ReadWays.FilePipeReaderAhead, ReadWays.MemoryMapped,
                ];
                return [.. s_coldSizes.Select(size => new Column(SizeText.Of(size), [.. ways.Select(way => new Candidate(
                    way.Name,
                    () => way.ReadAsync<Int64Sum>(new ReadCase(file, size, FileOptions.SequentialScan)),
                    () => PageCache.Evict(file.Path)))]))];
            })
        {
            IsWarm = true,
        };
}
