using Pipelines.File;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>Every way to write; the first of a list is its baseline.</summary>
internal static partial class WriteWays
{
    internal static WriteWay FileStreamSync { get; } = new FileStreamSyncWrite("FileStreamSync");

    // FileMode.Create truncates even the file that it has just made, and ext4 begins to write what was truncated when it is closed.
    internal static WriteWay FileStreamSyncNew { get; } = new FileStreamSyncWrite("FileStreamSync, CreateNew", mode: FileMode.CreateNew);

    internal static WriteWay FileStreamAsync { get; } = new FileStreamAsyncWrite("FileStreamAsync");

    internal static WriteWay FileStreamSyncUnbuffered { get; } = new FileStreamSyncWrite("FileStreamSync, unbuffered", 0);

    internal static WriteWay FileStreamAsyncUnbuffered { get; } = new FileStreamAsyncWrite("FileStreamAsync, unbuffered", 0);

    internal static WriteWay RandomAccessSync { get; } = new RandomAccessSyncWrite();

    internal static WriteWay RandomAccessAsync { get; } = new RandomAccessAsyncWrite();

    internal static WriteWay PipeWriterCreate { get; } = new PipeWriterCreateWrite();

    internal static WriteWay SystemCall { get; } = new SystemCallWrite();

    internal static WriteWay WriteBehind { get; } = new FilePipeWriterWrite("FilePipeWriter", FlushGuarantee.WriteBehind);

    internal static WriteWay WriteBehindNew { get; } = new FilePipeWriterWrite(
        "FilePipeWriter, CreateNew", FlushGuarantee.WriteBehind, FileMode.CreateNew);

    internal static WriteWay Written { get; } = new FilePipeWriterWrite("FilePipeWriter, written", FlushGuarantee.Written);

    internal static WriteWay FileStreamDurable { get; } = new FileStreamDurableWrite();

    internal static WriteWay Durable { get; } = new FilePipeWriterWrite("FilePipeWriter, durable", FlushGuarantee.Durable);

    internal static WriteWay GroupedDurable { get; } = new FilePipeWriterGroupedDurableWrite();

    internal static IReadOnlyList<WriteWay> All { get; } = MakeAll();

    /// <summary>Those whose every flush reaches the device.</summary>
    internal static IReadOnlyList<WriteWay> AllDurable { get; } = [FileStreamDurable, Durable, GroupedDurable];

    private static List<WriteWay> MakeAll()
    {
        List<WriteWay> ways =
        [
            FileStreamSync, FileStreamSyncNew, FileStreamAsync, PipeWriterCreate, RandomAccessSync, RandomAccessAsync, WriteBehind,
            WriteBehindNew, Written,
        ];
        if (!OperatingSystem.IsWindows())
        {
            ways.Add(SystemCall);
        }

        AddPeers(ways);
        return ways;
    }

    static partial void AddPeers(List<WriteWay> ways);
}
