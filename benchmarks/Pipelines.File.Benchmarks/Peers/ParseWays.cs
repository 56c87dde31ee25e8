using Nerdbank.Streams;
using Pipelines.Sockets.Unofficial;

namespace FilePipelinesBenchmarks.Parsing;

internal static partial class ParseWays
{
    internal static ParseWay GetReader { get; } = new PipeReaderParse("StreamConnection.GetReader", static path => StreamConnection.GetReader(Open(path)));

    internal static ParseWay MemoryMapped { get; } = new PipeReaderParse("MemoryMappedPipeReader", static path => MemoryMappedPipeReader.Create(path));

    internal static ParseWay UsePipeReader { get; } = new PipeReaderParse("Nerdbank UsePipeReader", static path => Open(path).UsePipeReader(LargeBuffer));

    static partial void AddPeers(List<ParseWay> ways) => ways.AddRange([GetReader, MemoryMapped, UsePipeReader]);
}
