using FilePipelinesBenchmarks.Peers;

namespace FilePipelinesBenchmarks.Parsing;

internal static partial class ParseWays
{
    static partial void AddPeers(List<ParseWay> ways)
        => ways.AddRange([PeerParses.UsePipeReader, PeerParses.UseStrictPipeReader, PeerParses.GetReader, PeerParses.MemoryMapped]);
}
