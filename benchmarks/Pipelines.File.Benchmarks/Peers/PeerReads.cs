using System.IO.Pipelines;
using FilePipelinesBenchmarks.Reading;
using Nerdbank.Streams;
using Pipelines.Sockets.Unofficial;

namespace FilePipelinesBenchmarks.Peers;

/// <summary>What other packages make of a file: PipelineAdapter2 and PipelineAdapter3 of 2019, and a mapped file.</summary>
internal static class PeerReads
{
    internal static ReadWay GetReader { get; } = new PeerRead("StreamConnection.GetReader", static point =>
    {
        // Room for two buffers, as for the Pipe that is filled by hand.
        long pause = Math.Max(64 * 1024, 2L * point.BufferSize);
        PipeOptions options = new(minimumSegmentSize: point.BufferSize, pauseWriterThreshold: pause, resumeWriterThreshold: pause / 2, useSynchronizationContext: false);
        return StreamConnection.GetReader(Open(point), options);
    });

    internal static ReadWay MemoryMapped { get; } = new PeerRead("MemoryMappedPipeReader", static point => MemoryMappedPipeReader.Create(point.File.Path, point.BufferSize));

    internal static ReadWay UsePipeReader { get; } = new PeerRead("Nerdbank UsePipeReader", static point => Open(point).UsePipeReader(point.BufferSize));

    private static FileStream Open(ReadCase point) => new(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, point.Options);

    private sealed class PeerRead(string name, Func<ReadCase, PipeReader> create) : ReadWay(name)
    {
        internal override ValueTask<long> ReadAsync<TWork>(ReadCase point) => PipeReading.ReadToEndAsync<TWork>(create(point), point);
    }
}
