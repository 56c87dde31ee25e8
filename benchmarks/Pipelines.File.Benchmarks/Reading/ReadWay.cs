namespace FilePipelinesBenchmarks.Reading;

/// <summary>
/// One way to read a file from opening it to closing it. BenchmarkDotNet's suites, the report and the pairs all measure these.
/// </summary>
internal abstract class ReadWay(string name)
{
    internal string Name { get; } = name;

    /// <summary>Opens the file, reads it to its end, does the work on every buffer and checks the answer.</summary>
    internal abstract ValueTask<long> ReadAsync<TWork>(ReadCase point)
        where TWork : struct, IBufferWork;
}
