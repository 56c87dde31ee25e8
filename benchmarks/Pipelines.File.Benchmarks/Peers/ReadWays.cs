using FilePipelinesBenchmarks.Peers;

namespace FilePipelinesBenchmarks.Reading;

internal static partial class ReadWays
{
    static partial void AddPeers(List<ReadWay> ways)
        => ways.AddRange([PeerReads.UsePipeReader, PeerReads.UseStrictPipeReader, PeerReads.GetReader, PeerReads.MemoryMapped]);

    static partial void AddMappingPeers(List<ReadWay> ways) => ways.Add(PeerReads.MemoryMapped);
}
