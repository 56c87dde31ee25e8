using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Writing;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>256 pieces, each on the device before its flush is done: what a journal or a log does.</summary>
public class DurableWriteGrid : WriteSuite
{
    private const int Pieces = 256;

    [Params(512, 4096, 65536)]
    public int FlushSize { get; set; }

    [Params(false, true)]
    public bool Preallocate { get; set; }

    [Benchmark(Baseline = true)]
    public ValueTask<long> FileStreamFlushToDisk() => Run(WriteWays.FileStreamDurable);

    [Benchmark]
    public ValueTask<long> FilePipeWriterDurable() => Run(WriteWays.Durable);

    [Benchmark]
    public ValueTask<long> FilePipeWriterDurableGrouped() => Run(WriteWays.GroupedDurable);

    private protected override WriteCase PointAt(string path) => new(path, (long)Pieces * FlushSize, FlushSize, Preallocate);
}
