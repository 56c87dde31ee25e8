using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Peers;

namespace FilePipelinesBenchmarks.Suites;

public abstract partial class ParserSuite
{
    [Benchmark]
    public ValueTask<long> PeerGetReader() => Run(PeerParses.GetReader);

    [Benchmark]
    public ValueTask<long> PeerMemoryMapped() => Run(PeerParses.MemoryMapped);

    [Benchmark]
    public ValueTask<long> PeerUsePipeReader() => Run(PeerParses.UsePipeReader);

    [Benchmark]
    public ValueTask<long> PeerUseStrictPipeReader() => Run(PeerParses.UseStrictPipeReader);
}
