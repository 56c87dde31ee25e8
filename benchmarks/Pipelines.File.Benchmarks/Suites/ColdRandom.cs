using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Cold;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>How long one read takes.</summary>
public class ColdRandom : ColdRandomSuite
{
    [IterationSetup]
    public void Evict() => PageCache.Evict(Point.File.Path);

    [Benchmark(Baseline = true, OperationsPerInvoke = Readers * ReadsPerReader)]
    public ValueTask<long> RandomAccessBlocking() => RandomReadWays.Blocking.RunAsync(Point);

    [Benchmark(OperationsPerInvoke = Readers * ReadsPerReader)]
    public ValueTask<long> RandomAccessAsync() => RandomReadWays.Asynchronous.RunAsync(Point);

    [Benchmark(OperationsPerInvoke = Readers * ReadsPerReader)]
    public ValueTask<long> FilePipeReader() => RandomReadWays.FilePipeReader.RunAsync(Point);
}
