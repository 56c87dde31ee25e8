using System.IO.Pipelines;
using FilePipelinesBenchmarks.Reading;
using Nerdbank.Streams;
using Pipelines.Sockets.Unofficial;

namespace FilePipelinesBenchmarks.Peers;

/// <summary>
/// What other packages make of a file: PipelineAdapter2 and PipelineAdapter3 of 2019, the latter's strict sibling, and a mapped file.
/// </summary>
internal static class PeerReads
{
    internal static ReadWay UsePipeReader { get; } = new StreamRead(
        "Nerdbank UsePipeReader", static (stream, bufferSize) => stream.UsePipeReader(bufferSize));

#pragma warning disable CS0618 // Its own package says by now: use PipeReader.Create instead. The report of 2019 had it.
    internal static ReadWay UseStrictPipeReader { get; } = new StreamRead(
        "Nerdbank UseStrictPipeReader", static (stream, bufferSize) => stream.UseStrictPipeReader(bufferSize));
#pragma warning restore CS0618

    internal static ReadWay GetReader { get; } = new StreamRead("StreamConnection.GetReader", static (stream, bufferSize) =>
    {
        // Room for two buffers, as for the Pipe that is filled by hand.
        long pause = Math.Max(64 * 1024, 2L * bufferSize);
        PipeOptions options = new(minimumSegmentSize: bufferSize, pauseWriterThreshold: pause,
            resumeWriterThreshold: pause / 2, useSynchronizationContext: false);
        return StreamConnection.GetReader(stream, options);
    });

    internal static ReadWay MemoryMapped { get; } = new MappedRead();

    /// <summary>Over a FileStream without a buffer of its own, which not every one of them closes.</summary>
    private sealed class StreamRead(string name, Func<FileStream, int, PipeReader> create) : ReadWay(name)
    {
        internal override async ValueTask<long> ReadAsync<TWork>(ReadCase point)
        {
            await using FileStream stream = new(
                point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, point.Options);
            return await PipeReading.ReadToEndAsync<TWork>(create(stream, point.BufferSize), point);
        }
    }

    private sealed class MappedRead() : ReadWay("MemoryMappedPipeReader")
    {
        internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
            => PipeReading.ReadToEndAsync<TWork>(MemoryMappedPipeReader.Create(point.File.Path, point.BufferSize), point);
    }
}
