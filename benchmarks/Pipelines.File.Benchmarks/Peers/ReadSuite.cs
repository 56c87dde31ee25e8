using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Peers;

namespace FilePipelinesBenchmarks.Suites;

public abstract partial class ReadSuite
{
    [Benchmark]
    public ValueTask<long> PeerGetReader() => Run(PeerReads.GetReader);

    [Benchmark]
    public ValueTask<long> PeerMemoryMapped() => Run(PeerReads.MemoryMapped);

    [Benchmark]
    public ValueTask<long> PeerUsePipeReader() => Run(PeerReads.UsePipeReader);

    [Benchmark]
    public ValueTask<long> PeerUseStrictPipeReader() => Run(PeerReads.UseStrictPipeReader);
}
