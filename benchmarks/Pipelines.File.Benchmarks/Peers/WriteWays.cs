using FilePipelinesBenchmarks.Peers;

namespace FilePipelinesBenchmarks.Writing;

internal static partial class WriteWays
{
    static partial void AddPeers(List<WriteWay> ways) => ways.Add(PeerWrites.UsePipeWriter);
}
