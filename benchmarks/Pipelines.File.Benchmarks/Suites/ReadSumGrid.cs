using FilePipelinesBenchmarks.Reading;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>The grid of 2019 with a program that touches every byte: the sum of the integers.</summary>
public class ReadSumGrid : ReadSuite
{
    private protected override ValueTask<long> RunAsync(ReadWay way, ReadCase point) => way.ReadAsync<Int64Sum>(point);
}
