using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Parsing;

namespace FilePipelinesBenchmarks.Suites;

public abstract partial class ParserSuite
{
    [Benchmark]
    public ValueTask<long> PeerGetReader() => Run(ParseWays.GetReader);

    [Benchmark]
    public ValueTask<long> PeerMemoryMapped() => Run(ParseWays.MemoryMapped);

    [Benchmark]
    public ValueTask<long> PeerUsePipeReader() => Run(ParseWays.UsePipeReader);
}
