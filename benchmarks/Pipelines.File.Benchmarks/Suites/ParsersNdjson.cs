using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Parsing;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>NDJSON by System.Text.Json, a document a line.</summary>
public class ParsersNdjson : ParserSuite
{
    private protected override TextFile MakeFile(TemporaryFolder folder, long length) => TextFile.MakeNdjson(folder, length);

    private protected override ValueTask<long> ParseAsync(ParseWay way, TextFile file) => way.ParseAsync<NdjsonParser>(file);
}
