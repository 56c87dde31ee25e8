using System.IO.Pipelines;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Parsing;
using Nerdbank.Streams;
using Pipelines.Sockets.Unofficial;

namespace FilePipelinesBenchmarks.Peers;

/// <summary>The lines of a file by other packages.</summary>
internal static class PeerParses
{
    private const int BufferSize = 64 * 1024;

    internal static ParseWay UsePipeReader { get; } = new StreamParse(
        "Nerdbank UsePipeReader", static stream => stream.UsePipeReader(BufferSize));

#pragma warning disable CS0618 // Its own package says by now: use PipeReader.Create instead. The report of 2019 had it.
    internal static ParseWay UseStrictPipeReader { get; } = new StreamParse(
        "Nerdbank UseStrictPipeReader", static stream => stream.UseStrictPipeReader(BufferSize));
#pragma warning restore CS0618

    internal static ParseWay GetReader { get; } = new StreamParse(
        "StreamConnection.GetReader", static stream => StreamConnection.GetReader(stream));

    internal static ParseWay MemoryMapped { get; } = new MappedParse();

    /// <summary>Over a stream that not every one of them closes.</summary>
    private sealed class StreamParse(string name, Func<FileStream, PipeReader> create) : ParseWay(name)
    {
        internal override async ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            await using FileStream stream = new(
                file.Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, FileOptions.SequentialScan);
            return await LineSplitter.ParseAsync<TParser>(create(stream), file);
        }
    }

    private sealed class MappedParse() : ParseWay("MemoryMappedPipeReader")
    {
        internal override ValueTask<long> ParseAsync<TParser>(TextFile file)
            => LineSplitter.ParseAsync<TParser>(MemoryMappedPipeReader.Create(file.Path), file);
    }
}
