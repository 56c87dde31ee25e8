using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Parsing;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>Lines counted.</summary>
public class ParsersLines : ParserSuite
{
    private protected override TextFile MakeFile(TemporaryFolder folder, long length) => TextFile.MakeLines(folder, length);

    private protected override ValueTask<long> ParseAsync(ParseWay way, TextFile file) => way.ParseAsync<LineParser>(file);
}
