using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.SmallFiles;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>10,000 files of 1 to 16 KiB, each opened, read and closed, one after the other. The figures are for one file.</summary>
public class SmallFiles : Suite
{
    private const int Count = 10_000;

    private SmallFileSet? _files;

    [Benchmark(Baseline = true, OperationsPerInvoke = Count)]
    public ValueTask<long> ReadAllBytesAsync() => Run(SmallFileWays.ReadAllBytesAsync);

    [Benchmark(OperationsPerInvoke = Count)]
    public ValueTask<long> ReadAllBytes() => Run(SmallFileWays.ReadAllBytes);

    [Benchmark(OperationsPerInvoke = Count)]
    public ValueTask<long> FileStreamAsync() => Run(SmallFileWays.FileStreamAsync);

    [Benchmark(OperationsPerInvoke = Count)]
    public ValueTask<long> PipeReaderCreate() => Run(SmallFileWays.PipeReaderCreate);

    [Benchmark(OperationsPerInvoke = Count)]
    public ValueTask<long> FilePipeReader() => Run(SmallFileWays.FilePipeReader);

    private protected override void Make(TemporaryFolder folder) => _files = SmallFileSet.Make(folder, Count, 1024, 16384);

    private ValueTask<long> Run(SmallFileWay way) => way.ReadAllAsync(_files!);
}
