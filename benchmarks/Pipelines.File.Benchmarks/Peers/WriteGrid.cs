using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Peers;

namespace FilePipelinesBenchmarks.Suites;

public partial class WriteGrid
{
    [Benchmark]
    public ValueTask<long> PeerUsePipeWriter() => Run(PeerWrites.UsePipeWriter);
}
