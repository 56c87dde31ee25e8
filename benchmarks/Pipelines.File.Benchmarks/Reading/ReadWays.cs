namespace FilePipelinesBenchmarks.Reading;

/// <summary>Every way to read; the first is the baseline.</summary>
internal static partial class ReadWays
{
    private const int DefaultStreamBuffer = 4096;

    internal static ReadWay FileStreamSync { get; } = new FileStreamSyncRead("FileStreamSync");

    internal static ReadWay FileStreamSyncRented { get; } = new FileStreamSyncRentedRead();

    internal static ReadWay FileStreamAsync { get; } = new FileStreamAsyncRead("FileStreamAsync");

    // The .NET 6 article's four: the stream's own buffer is the default one or none, whatever the caller's.
    internal static ReadWay FileStreamSyncBuffered { get; } = new FileStreamSyncRead(
        "FileStreamSync, 4 KiB in the stream", DefaultStreamBuffer);

    internal static ReadWay FileStreamSyncUnbuffered { get; } = new FileStreamSyncRead("FileStreamSync, unbuffered", 0);

    internal static ReadWay FileStreamAsyncBuffered { get; } = new FileStreamAsyncRead(
        "FileStreamAsync, 4 KiB in the stream", DefaultStreamBuffer);

    internal static ReadWay FileStreamAsyncUnbuffered { get; } = new FileStreamAsyncRead("FileStreamAsync, unbuffered", 0);

    internal static ReadWay PipeReaderCreate { get; } = new PipeReaderCreateRead();

    internal static ReadWay FileStreamToPipe { get; } = new FileStreamToPipeRead();

    internal static ReadWay RandomAccessSync { get; } = new RandomAccessSyncRead();

    internal static ReadWay RandomAccessAsync { get; } = new RandomAccessAsyncRead();

    internal static ReadWay SystemCall { get; } = new SystemCallRead();

    /// <summary>Where every byte is touched; else it would leave most of the file alone.</summary>
    internal static ReadWay MemoryMapped { get; } = new MemoryMappedRead();

    internal const string KernelCopyName = "the kernel's copy";

    /// <summary>What no way can be faster than: 256 KiB a call into memory aligned to a page, whatever the size of the buffers.</summary>
    internal static ReadWay KernelCopy { get; } = new KernelCopyRead();

    /// <summary>The same call into memory aligned to a page, a cache line, and less.</summary>
    internal static IReadOnlyList<ReadWay> Aligned { get; } = [.. new[] { 0, 64, 32, 16, 8 }.Select(
        skew => new AlignedSystemCallRead(skew))];

    internal static ReadWay FilePipeReader { get; } = new FilePipeReaderRead("FilePipeReader", readAhead: 0);

    internal static ReadWay FilePipeReaderAhead { get; } = new FilePipeReaderRead("FilePipeReader, read-ahead", readAhead: 1024 * 1024);

    internal static IReadOnlyList<ReadWay> All { get; } = MakeAll();

    /// <summary>What a mapping is compared with, and those that map.</summary>
    internal static IReadOnlyList<ReadWay> AgainstMapping { get; } = MakeAgainstMapping();

    private static List<ReadWay> MakeAll()
    {
        List<ReadWay> ways =
        [
            FileStreamSync, FileStreamSyncRented, FileStreamAsync, PipeReaderCreate, FileStreamToPipe, RandomAccessSync, RandomAccessAsync,
            FilePipeReader, FilePipeReaderAhead, KernelCopy,
        ];
        if (!OperatingSystem.IsWindows())
        {
            ways.Add(SystemCall);
        }

        AddPeers(ways);
        return ways;
    }

    private static List<ReadWay> MakeAgainstMapping()
    {
        List<ReadWay> ways = [FileStreamSync, RandomAccessSync, PipeReaderCreate, FilePipeReader, FilePipeReaderAhead, MemoryMapped];
        AddMappingPeers(ways);
        return ways;
    }

    static partial void AddPeers(List<ReadWay> ways);

    static partial void AddMappingPeers(List<ReadWay> ways);
}
