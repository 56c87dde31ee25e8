using FilePipelinesBenchmarks.Cold;
using FilePipelinesBenchmarks.Copying;
using FilePipelinesBenchmarks.Durable;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Memory;
using FilePipelinesBenchmarks.Parsing;
using FilePipelinesBenchmarks.Reading;
using FilePipelinesBenchmarks.SmallFiles;
using FilePipelinesBenchmarks.Writing;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>What the report measures.</summary>
internal static class ReportPlan
{
    internal const int RandomReaders = 64;

    private const int ReadsPerReader = 128;

    private const long MiB = 1024 * 1024;
    private const int SmallFileCount = 2000;
    private const int DurablePieces = 128;

    // FastStream's benchmark builds ten streams a run, too.
    private const int StreamsPerRun = 10;

    private static readonly int[] s_durableSizes = [512, 4096, 65536];
    private static readonly int[] s_coldSizes = [4096, 65536];
    private static readonly long[] s_copiedMebibytes = [1, 128];
    private static readonly (int Minimum, int Maximum)[] s_smallLengths = [(1024, 1024), (4096, 4096), (16384, 16384), (1024, 16384)];

    internal static IReadOnlyList<int> BufferSizes { get; } = [2048, 4096, 16384, 65536, 262144];

    internal static IReadOnlyList<int> FlushSizes { get; } = [512, 2048, 4096, 16384, 65536, 262144];

    internal static IReadOnlyList<(int MiB, bool IsAsynchronous)> ReadGrids { get; } = [(4, false), (4, true), (128, false), (128, true)];

    /// <summary>FastStream's grid of arrays: bytes of each, and how many.</summary>
    internal static IReadOnlyList<(int Size, int Writes)> MemoryPoints { get; } = [(100, 10), (100, 100), (100, 1000), (100_000, 10), (100_000, 100), (100_000, 1000)];

    /// <summary>FastStream's grid of doubles.</summary>
    internal static IReadOnlyList<(int Size, int Writes)> MemoryDoubles { get; } = [(sizeof(double), 10), (sizeof(double), 100), (sizeof(double), 1000)];

    internal static IReadOnlyList<ReportSection> Sections { get; } = Make();

    internal static string ReadKey(int mebibytes, bool isAsynchronous) => $"read-{mebibytes}-{(isAsynchronous ? "asynchronous" : "sequential")}";

    internal static string WriteKey(bool preallocate) => preallocate ? "write-preallocated" : "write";

    internal static RandomReadCase RandomReads(TemporaryFolder folder) => new(IntegerFile.Make(folder, 256 * MiB), RandomReaders, ReadsPerReader, PieceSize: 4096);

    private static List<ReportSection> Make()
    {
        List<ReportSection> sections =
        [
            .. ReadGrids.Select(grid => Read<LastEightBytes>(ReadKey(grid.MiB, grid.IsAsynchronous), string.Empty, grid.MiB, grid.IsAsynchronous, grid.MiB == 4 ? 1 : 1.4)),
            Read<Int64Sum>("sum-4", ", every byte summed", 4, isAsynchronous: false, 0.6),
            Read<Int64Sum>("sum-128", ", every byte summed", 128, isAsynchronous: false, 0.8),
            Write(preallocate: false, 2.4),
            Write(preallocate: true, 1.8),
            Durable(),
            .. OperatingSystem.IsLinux() ? (ReportSection[])[Replace()] : [],
            Parse<LineParser>("lines", "Lines counted, 64 MiB", TextFile.MakeLines),
            Parse<NdjsonParser>("ndjson", "NDJSON deserialised, 64 MiB", TextFile.MakeNdjson),
            Parse<CsvParser>("csv", "CSV parsed, 64 MiB", TextFile.MakeCsv),
            Copy(),
            Small(),
            Memory("memory-bytes", "Content of arrays built in memory, then ToArray", "writes × bytes", MemoryPoints, MemoryWays.Bytes),
            Memory("memory-doubles", "Content of doubles built in memory, then ToArray", "doubles", MemoryDoubles, MemoryWays.Doubles),
            MemoryToFile(),
        ];
        if (PageCache.IsSupported)
        {
            sections.Add(ColdSequential());
            sections.Add(ColdRandom());
        }

        return sections;
    }

    private static ReportSection Read<TWork>(string key, string work, int mebibytes, bool isAsynchronous, double weight)
        where TWork : struct, IBufferWork
    {
        FileOptions options = FileOptions.SequentialScan | (isAsynchronous ? FileOptions.Asynchronous : FileOptions.None);
        return new ReportSection(
            key,
            $"Reading {mebibytes} MiB{work}, {(isAsynchronous ? "SequentialScan, Asynchronous" : "SequentialScan")}",
            "buffer size",
            weight,
            new PairedMeasurement(5, 31, TimeSpan.FromMilliseconds(10)),
            ReportText.ReadReason,
            folder =>
            {
                IntegerFile file = IntegerFile.Make(folder, mebibytes * MiB);
                return [.. BufferSizes.Select(size => new Column(SizeText.Of(size), [.. ReadWays.All.Select(way => new Candidate(way.Name, () => way.ReadAsync<TWork>(new ReadCase(file, size, options))))]))];
            });
    }

    private static ReportSection Write(bool preallocate, double weight)
        => new(
            WriteKey(preallocate),
            $"Writing 100 MiB{(preallocate ? ", preallocated" : string.Empty)}",
            "bytes between two flushes",
            weight,
            new PairedMeasurement(5, 21, TimeSpan.FromMilliseconds(1)),
            ReportText.WriteReason,
            folder => [.. FlushSizes.Select(size => new Column(SizeText.Of(size), [.. WriteWays.All.Select(way =>
            {
                WriteCase point = new(folder.PathOf("written.bin"), 100 * MiB, size, preallocate);
                return new Candidate(way.Name, () => way.WriteAsync(point), () => File.Delete(point.Path));
            })]))]);

    private static ReportSection Durable()
        => new(
            "durable",
            $"{DurablePieces} durable flushes, each on the device",
            "bytes between two flushes",
            0.7,
            new PairedMeasurement(5, 21, TimeSpan.FromMilliseconds(1)),
            ReportText.DurableReason,
            folder => [.. s_durableSizes.Select(size => new Column(SizeText.Of(size), [.. WriteWays.AllDurable.Select(way =>
            {
                WriteCase point = new(folder.PathOf("durable.bin"), DurablePieces * (long)size, size, Preallocate: false);
                return new Candidate(way.Name, () => way.WriteAsync(point), () => File.Delete(point.Path));
            })]))]);

    private static ReportSection Replace()
        => new(
            "replace",
            "Replacing a file of 4 KiB",
            "guarantee",
            0.5,
            new PairedMeasurement(7, 41, TimeSpan.FromMilliseconds(20)),
            ReportText.ReplaceReason,
            folder => [.. ((bool[])[false, true]).Select(isDurable => new Column(isDurable ? "durable" : "no sync", ReplaceWays.Of(folder.PathOf(isDurable ? "durable" : "written"), isDurable)))]);

    private static ReportSection Parse<TParser>(string key, string title, Func<TemporaryFolder, long, TextFile> make)
        where TParser : struct, ILineParser
        => new(
            key,
            title,
            "file",
            0.5,
            new PairedMeasurement(5, 31, TimeSpan.FromMilliseconds(10)),
            ReportText.ParseReason,
            folder =>
            {
                ParseWays.CompileAsync<TParser>(folder, make).GetAwaiter().GetResult();
                TextFile file = make(folder, 64 * MiB);
                return [new Column("64 MiB", [.. ParseWays.All.Select(way => new Candidate(way.Name, () => way.ParseAsync<TParser>(file)))])];
            });

    private static ReportSection Copy()
        => new(
            "copy",
            "Copying a file to a new one",
            "length",
            0.8,
            new PairedMeasurement(5, 31, TimeSpan.FromMilliseconds(5), maxRuns: 20),
            ReportText.CopyReason,
            folder => [.. s_copiedMebibytes.Select(mebibytes =>
            {
                IntegerFile source = IntegerFile.Make(folder, mebibytes * MiB);
                string destination = folder.PathOf("copy.bin");
                return new Column($"{mebibytes} MiB", [.. CopyWays.All.Select(way => new Candidate(way.Name, () => way.RunAsync(source.Path, destination, source.Length), () => File.Delete(destination)))]);
            })]);

    private static ReportSection Small()
        => new(
            "small",
            $"One of {SmallFileCount:N0} small files, opened, read and closed one after the other",
            "length",
            0.7,
            new PairedMeasurement(5, 31, TimeSpan.FromMilliseconds(10)),
            ReportText.SmallReason,
            folder => [.. s_smallLengths.Select(lengths =>
            {
                (int minimum, int maximum) = lengths;
                SmallFileSet files = SmallFileSet.Make(folder, SmallFileCount, minimum, maximum);
                string name = minimum == maximum ? SizeText.Of(minimum) : $"{minimum / 1024} to {SizeText.Of(maximum)}";
                return new Column(name, [.. SmallFileWays.All.Select(way => new Candidate(way.Name, () => way.ReadAllAsync(files)))]);
            })])
        {
            Operations = SmallFileCount,
        };

    private static ReportSection Memory(string key, string title, string axis, IReadOnlyList<(int Size, int Writes)> points, IReadOnlyList<MemoryWay> ways)
        => new(
            key,
            title,
            axis,
            0.7,
            new ProcessMeasurement(key, 3, 11),
            ReportText.MemoryReason,
            _ => [.. points.Select(point => new Column(MemoryPoint(point), [.. ways.Select(way =>
            {
                MemoryCase content = new(point.Size, point.Writes, StreamsPerRun);
                return new Candidate(way.Name, () => way.RunAsync(content));
            })]))])
        {
            Operations = StreamsPerRun,
        };

    private static ReportSection MemoryToFile()
    {
        const string Key = "memory-file";
        return new ReportSection(
            Key,
            "Content of arrays built in memory, then CopyToAsync to a new file",
            "writes × bytes",
            0.7,
            new ProcessMeasurement(Key, 3, 11),
            ReportText.MemoryReason,
            folder => [.. MemoryPoints.Select(point => new Column(MemoryPoint(point), [.. MemoryWays.Files.Select(way =>
            {
                MemoryCase content = new(point.Size, point.Writes, 1, folder.PathOf("content.bin"));
                return new Candidate(way.Name, () => way.RunAsync(content), () => File.Delete(content.Path));
            })]))]);
    }

    private static string MemoryPoint((int Size, int Writes) point)
        => point.Size == sizeof(double) ? $"{point.Writes:N0}" : $"{point.Writes:N0} × {point.Size:N0} B";

    private static ReportSection ColdSequential()
        => new(
            "cold-sequential",
            "Reading 256 MiB that the page cache does not hold",
            "buffer size",
            0.8,
            new PairedMeasurement(5, 15, TimeSpan.FromMilliseconds(1)),
            ReportText.ColdSequentialReason,
            folder =>
            {
                IntegerFile file = IntegerFile.Make(folder, 256 * MiB);
                ReadWay[] ways = [ReadWays.FileStreamSync, ReadWays.FileStreamAsync, ReadWays.PipeReaderCreate, ReadWays.FilePipeReader, ReadWays.FilePipeReaderAhead];
                return [.. s_coldSizes.Select(size => new Column(SizeText.Of(size), [.. ways.Select(way => new Candidate(
                    way.Name,
                    () => way.ReadAsync<Int64Sum>(new ReadCase(file, size, FileOptions.SequentialScan)),
                    () => PageCache.Evict(file.Path)))]))];
            });

    private static ReportSection ColdRandom()
        => new(
            "cold-random",
            $"One read of 4 KiB of the {ReadsPerReader} that each of {RandomReaders} readers does at random places, nothing in the page cache",
            "reads",
            0.6,
            new PairedMeasurement(5, 15, TimeSpan.FromMilliseconds(1)),
            ReportText.ColdRandomReason,
            folder =>
            {
                RandomReadCase point = RandomReads(folder);
                return [new Column($"{point.Readers * point.ReadsPerReader:N0}", [.. RandomReadWays.All.Select(way => new Candidate(way.Name, () => way.RunAsync(point), () => PageCache.Evict(point.File.Path)))])];
            })
        {
            Operations = RandomReaders * ReadsPerReader,
        };
}
