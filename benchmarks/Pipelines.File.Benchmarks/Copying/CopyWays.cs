using System.IO.Pipelines;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Copying;

/// <summary>Every way to copy; the first is the baseline.</summary>
internal static class CopyWays
{
    // As the streams here and File.Copy do it: FileMode.Create truncates even a new file, and ext4 then allocates and begins to write it
    // when it is closed.
    private static readonly FilePipeWriterOptions s_newFile = new() { Mode = FileMode.CreateNew };

    internal static CopyWay StreamCopy { get; } = new("FileStream.CopyToAsync", static async (source, destination) =>
    {
        await using FileStream from = OpenSource(source);
        await using FileStream to = MakeDestination(destination);
        await from.CopyToAsync(to);
    });

    internal static CopyWay FileCopy { get; } = new("File.Copy", static (source, destination) =>
    {
        File.Copy(source, destination);
        return default;
    });

    internal static CopyWay PipeCopy { get; } = new("PipeReader.Create to PipeWriter.Create", static (source, destination)
        => CopyAsync(PipeReader.Create(OpenSource(source)), PipeWriter.Create(MakeDestination(destination))));

    internal static CopyWay ReaderToWriter { get; } = new("FilePipeReader to FilePipeWriter", static (source, destination)
        => CopyAsync(FilePipeReader.Create(source), FilePipeWriter.Create(destination, s_newFile)));

    internal static CopyWay ReaderToStream { get; } = new("FilePipeReader to FileStream", static async (source, destination) =>
    {
        await using FileStream to = MakeDestination(destination);
        FilePipeReader reader = FilePipeReader.Create(source);
        await reader.CopyToAsync(to);
        await reader.CompleteAsync();
    });

    /// <summary>
    /// Through memory, as it is where the system cannot copy by itself: the reader does not know that the writer's end is a file.
    /// </summary>
    internal static CopyWay ReaderToStreamOfWriter { get; } = new(
        "FilePipeReader to FilePipeWriter, through memory", static async (source, destination) =>
        {
            FilePipeReader reader = FilePipeReader.Create(source);
            FilePipeWriter writer = FilePipeWriter.Create(destination, s_newFile);
            await reader.CopyToAsync(writer.AsStream(leaveOpen: true));
            await reader.CompleteAsync();
            await writer.CompleteAsync();
        });

    internal static IReadOnlyList<CopyWay> All { get; } =
    [
        StreamCopy, FileCopy, PipeCopy, ReaderToWriter, ReaderToStreamOfWriter, ReaderToStream,
    ];

    private static async ValueTask CopyAsync(PipeReader reader, PipeWriter writer)
    {
        await reader.CopyToAsync(writer);
        await reader.CompleteAsync();
        await writer.CompleteAsync();
    }

    private static FileStream OpenSource(string path)
        => new(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, FileOptions.SequentialScan);

    private static FileStream MakeDestination(string path)
        => new(path, FileMode.CreateNew, FileAccess.Write, FileShare.Read, bufferSize: 0);
}
