using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Cold;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Reading;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>256 MiB from the device: the page cache lets go of the file before every run. Linux.</summary>
public class ColdSequential : Suite
{
    private ReadCase? _point;

    [Params(4096, 65536)]
    public int BufferSize { get; set; }

    [IterationSetup]
    public void Evict() => PageCache.Evict(_point!.File.Path);

    [Benchmark(Baseline = true)]
    public ValueTask<long> FileStreamSync() => Run(ReadWays.FileStreamSync);

    [Benchmark]
    public ValueTask<long> FileStreamAsync() => Run(ReadWays.FileStreamAsync);

    [Benchmark]
    public ValueTask<long> PipeReaderCreate() => Run(ReadWays.PipeReaderCreate);

    [Benchmark]
    public ValueTask<long> FilePipeReader() => Run(ReadWays.FilePipeReader);

    [Benchmark]
    public ValueTask<long> FilePipeReaderAhead() => Run(ReadWays.FilePipeReaderAhead);

    private protected override void Make(TemporaryFolder folder)
        => _point = new ReadCase(IntegerFile.Make(folder, 256 * BytesPerMiB), BufferSize, FileOptions.SequentialScan);

    private ValueTask<long> Run(ReadWay way) => way.ReadAsync<Int64Sum>(_point!);
}
