using FilePipelinesBenchmarks.Reading;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>The grid of 2019 as it was: the last eight bytes of every buffer are looked at.</summary>
public class ReadGrid : ReadSuite
{
    private protected override ValueTask<long> RunAsync(ReadWay way, ReadCase point) => way.ReadAsync<LastEightBytes>(point);
}
