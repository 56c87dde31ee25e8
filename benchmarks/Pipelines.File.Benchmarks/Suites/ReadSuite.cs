using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Reading;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>
/// The grid of 2019: five buffer sizes, two ways to open, two files of incrementing integers in the page cache. Every method opens the
/// file, reads it to its end and throws if it did not find what the file holds.
/// </summary>
public abstract partial class ReadSuite : Suite
{
    private ReadCase? _point;

    [Params(4, 128)]
    public int MiB { get; set; }

    [Params(2048, 4096, 16384, 65536, 262144)]
    public int BufferSize { get; set; }

    [Params(FileOptions.SequentialScan, FileOptions.SequentialScan | FileOptions.Asynchronous)]
    public FileOptions Options { get; set; }

    [Benchmark(Baseline = true)]
    public ValueTask<long> FileStreamSync() => Run(ReadWays.FileStreamSync);

    [Benchmark]
    public ValueTask<long> FileStreamSyncRented() => Run(ReadWays.FileStreamSyncRented);

    [Benchmark]
    public ValueTask<long> FileStreamAsync() => Run(ReadWays.FileStreamAsync);

    [Benchmark]
    public ValueTask<long> PipeReaderCreate() => Run(ReadWays.PipeReaderCreate);

    [Benchmark]
    public ValueTask<long> FileStreamToPipe() => Run(ReadWays.FileStreamToPipe);

    [Benchmark]
    public ValueTask<long> RandomAccessSync() => Run(ReadWays.RandomAccessSync);

    [Benchmark]
    public ValueTask<long> RandomAccessAsync() => Run(ReadWays.RandomAccessAsync);

    [Benchmark]
    public ValueTask<long> SystemCall() => Run(ReadWays.SystemCall);

    [Benchmark]
    public ValueTask<long> FilePipeReader() => Run(ReadWays.FilePipeReader);

    [Benchmark]
    public ValueTask<long> FilePipeReaderAhead() => Run(ReadWays.FilePipeReaderAhead);

    private protected override void Make(TemporaryFolder folder)
        => _point = new ReadCase(IntegerFile.Make(folder, MiB * BytesPerMiB), BufferSize, Options);

    private protected abstract ValueTask<long> RunAsync(ReadWay way, ReadCase point);

    private ValueTask<long> Run(ReadWay way) => RunAsync(way, _point!);
}
