using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Parsing;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>
/// One parser over every way to get at the lines of a file of 64 MiB. What the parser finds is known from making the file.
/// </summary>
public abstract partial class ParserSuite : Suite
{
    private TextFile? _file;

    [Benchmark(Baseline = true)]
    public ValueTask<long> StreamReader() => Run(ParseWays.StreamReader);

    [Benchmark]
    public ValueTask<long> PipeReaderCreate() => Run(ParseWays.PipeReaderCreate);

    [Benchmark]
    public ValueTask<long> PipeReaderCreateLarge() => Run(ParseWays.PipeReaderCreateLarge);

    [Benchmark]
    public ValueTask<long> FilePipeReader() => Run(ParseWays.FilePipeReader);

    [Benchmark]
    public ValueTask<long> FilePipeReaderAhead() => Run(ParseWays.FilePipeReaderAhead);

    [Benchmark]
    public ValueTask<long> ReadLineSequencesAsync() => Run(ParseWays.ReadLineSequencesAsync);

    [Benchmark]
    public ValueTask<long> InMemory() => Run(ParseWays.InMemory);

    private protected abstract TextFile MakeFile(TemporaryFolder folder, long length);

    private protected abstract ValueTask<long> ParseAsync(ParseWay way, TextFile file);

    private protected override void Make(TemporaryFolder folder) => _file = MakeFile(folder, 64 * BytesPerMiB);

    private ValueTask<long> Run(ParseWay way) => ParseAsync(way, _file!);
}
