using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Parsing;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>CSV with quoted fields.</summary>
public class ParsersCsv : ParserSuite
{
    private protected override TextFile MakeFile(TemporaryFolder folder, long length) => TextFile.MakeCsv(folder, length);

    private protected override ValueTask<long> ParseAsync(ParseWay way, TextFile file) => way.ParseAsync<CsvParser>(file);
}
