using BenchmarkDotNet.Attributes;

namespace FilePipelines.Benchmarks;

/// <summary>
/// The grid of 2019 as it was: five buffer sizes, two ways to open, two files of incrementing integers in the page cache, and the last
/// eight bytes of every buffer looked at. Every method opens the file, reads it to its end and throws if it did not find what the file
/// holds.
/// </summary>
public class ReadGrid : Suite
{
    private ReadPoint? _point;

    [Params(4, 128)]
    public int MiB { get; set; }

    [Params(2048, 4096, 16384, 65536, 262144)]
    public int BufferSize { get; set; }

    [Params(FileOptions.SequentialScan, FileOptions.SequentialScan | FileOptions.Asynchronous)]
    public FileOptions Options { get; set; }

    [Benchmark(Baseline = true)]
    public ValueTask<long> FileStreamSync() => ReadWays<LastEightBytes>.FileStreamSync.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> FileStreamSyncRented() => ReadWays<LastEightBytes>.FileStreamSyncRented.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> FileStreamAsync() => ReadWays<LastEightBytes>.FileStreamAsync.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> PipeReaderCreate() => ReadWays<LastEightBytes>.PipeReaderCreate.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> FileStreamToPipe() => ReadWays<LastEightBytes>.FileStreamToPipe.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> RandomAccessSync() => ReadWays<LastEightBytes>.RandomAccessSync.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> RandomAccessAsync() => ReadWays<LastEightBytes>.RandomAccessAsync.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> SystemCall() => ReadWays<LastEightBytes>.SystemCall.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> FilePipeReader() => ReadWays<LastEightBytes>.Own.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> FilePipeReaderAhead() => ReadWays<LastEightBytes>.OwnAhead.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> PeerGetReader() => ReadWays<LastEightBytes>.GetReader.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> PeerMemoryMapped() => ReadWays<LastEightBytes>.MappedPipeReader.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> PeerUsePipeReader() => ReadWays<LastEightBytes>.UsePipeReader.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> PeerUseStrictPipeReader() => ReadWays<LastEightBytes>.UseStrictPipeReader.RunAsync(_point!);

    private protected override void Make(TemporaryFolder folder)
        => _point = new ReadPoint(IntegerFile.Make(folder, MiB * 1024 * BytesPerKiB), BufferSize, Options);
}
