using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Parsing;

/// <summary>One way to get at the lines of a file.</summary>
internal abstract class ParseWay(string name)
{
    internal string Name { get; } = name;

    /// <summary>Opens the file, parses it to its end, closes it and checks the answer.</summary>
    internal abstract ValueTask<long> ParseAsync<TParser>(TextFile file)
        where TParser : struct, ILineParser;
}
