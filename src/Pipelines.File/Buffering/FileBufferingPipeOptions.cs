using Pipelines.File.IO;

namespace Pipelines.File;

/// <summary>
/// How a <see cref="FileBufferingPipe"/> buffers. An instance is immutable, and any number of pipes may share it. A value that is out of
/// range throws <see cref="ArgumentOutOfRangeException"/> when a pipe is made.
/// </summary>
public sealed class FileBufferingPipeOptions
{
    private const int DefaultMemoryThreshold = 64 * 1024;

    internal static FileBufferingPipeOptions Default { get; } = new();

    /// <summary>
    /// How many bytes the pipe holds in memory before it goes on in a file; 65,536 by default. 0 goes on in a file with the first flush.
    /// </summary>
    /// <remarks>
    /// A pipe that goes on in a file keeps these bytes in memory, and up to 1 MiB that is not written yet. What is advanced over between
    /// two flushes does not count: flush as often as you would with a file.
    /// </remarks>
    public int MemoryThreshold { get; init; } = DefaultMemoryThreshold;

    /// <summary>
    /// The maximum number of bytes that may be written; <see langword="null"/>, the default, sets no limit. The flush that exceeds it, and
    /// every reader at the end of what was flushed before, throws <see cref="BufferTooLongException"/>.
    /// </summary>
    public long? MaxLength { get; init; }

    /// <summary>
    /// The folder of the file; <see langword="null"/>, the default, is <see cref="Path.GetTempPath"/>. On Linux the file has no name
    /// (O_TMPFILE of open(2)) where the file system supports that; elsewhere it is called <c>.pipelines-file-</c> and 16 hexadecimal digits
    /// and is deleted as soon as it is open, on Windows when it is closed. A process that is killed leaves no file.
    /// </summary>
    public string? Folder { get; init; }

    /// <summary>
    /// Whether the pipe keeps everything, so that it can be read again; <see langword="true"/> by default. <see langword="false"/> gives
    /// memory back when <see cref="FileBufferingPipe.Reader"/> has consumed it, and then the pipe has this one reader.
    /// </summary>
    public bool Keep { get; init; } = true;

    /// <summary>
    /// The pool that memory comes from; <see langword="null"/>, the default, is the library's own pool, which pins its memory once and
    /// reuses it.
    /// </summary>
    public MemoryPool<byte>? Pool { get; init; }

    internal string FullFolder => Path.GetFullPath(Folder ?? Path.GetTempPath());

    internal void Validate()
    {
        Option.RequireWithin(MemoryThreshold, 0, int.MaxValue);
        Option.RequireWithin(MaxLength ?? 0, 0, long.MaxValue, nameof(MaxLength));
        Option.Require(Folder != "", "Folder is empty.", nameof(Folder));
    }
}
