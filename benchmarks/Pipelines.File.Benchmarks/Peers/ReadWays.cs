using FilePipelinesBenchmarks.Peers;

namespace FilePipelinesBenchmarks.Reading;

internal static partial class ReadWays
{
    static partial void AddPeers(List<ReadWay> ways) => ways.AddRange([PeerReads.GetReader, PeerReads.MemoryMapped, PeerReads.UsePipeReader]);
}
