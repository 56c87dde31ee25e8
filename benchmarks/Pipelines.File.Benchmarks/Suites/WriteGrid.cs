using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Writing;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>100 MiB written to a new file in pieces, with a flush after each.</summary>
public partial class WriteGrid : WriteSuite
{
    [Params(512, 2048, 4096, 16384, 65536, 262144)]
    public int FlushSize { get; set; }

    [Params(false, true)]
    public bool Preallocate { get; set; }

    [Benchmark(Baseline = true)]
    public ValueTask<long> FileStreamSync() => Run(WriteWays.FileStreamSync);

    [Benchmark]
    public ValueTask<long> FileStreamAsync() => Run(WriteWays.FileStreamAsync);

    [Benchmark]
    public ValueTask<long> PipeWriterCreate() => Run(WriteWays.PipeWriterCreate);

    [Benchmark]
    public ValueTask<long> RandomAccessSync() => Run(WriteWays.RandomAccessSync);

    [Benchmark]
    public ValueTask<long> RandomAccessAsync() => Run(WriteWays.RandomAccessAsync);

    [Benchmark]
    public ValueTask<long> SystemCall() => Run(WriteWays.SystemCall);

    [Benchmark]
    public ValueTask<long> FilePipeWriter() => Run(WriteWays.WriteBehind);

    [Benchmark]
    public ValueTask<long> FilePipeWriterWritten() => Run(WriteWays.Written);

    private protected override WriteCase PointAt(string path) => new(path, 100 * BytesPerMiB, FlushSize, Preallocate);
}
