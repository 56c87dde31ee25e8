using Pipelines.File.IO;

namespace Pipelines.File;

/// <summary>
/// How a <see cref="FilePipeReader"/> reads. An instance is immutable, and any number of readers may share it. When a reader is
/// created, a value that is out of range throws <see cref="ArgumentOutOfRangeException"/>, and options that do not fit together throw
/// <see cref="ArgumentException"/>.
/// </summary>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// FilePipeReaderOptions options = new() { Offset = 4096, Length = 1024 * 1024, FileOptions = FileOptions.SequentialScan };
/// await using FilePipeReader reader = FilePipeReader.Create("data.bin", options);
/// </code>
/// </example>
public sealed class FilePipeReaderOptions
{
    /// <summary>The default of <see cref="BufferSize"/>, bytes.</summary>
    internal const int DefaultBufferSize = 64 * 1024;

    /// <summary>The largest <see cref="BufferSize"/>, bytes.</summary>
    internal const int MaxBufferSize = 1024 * 1024 * 1024;

    private const int DefaultFollowMilliseconds = 250;

    private readonly FileShare? _share;
    private long _offset;
    private long? _length;

    internal static FilePipeReaderOptions Default { get; } = new();

    /// <summary>
    /// The minimum size of one segment of the buffer, in bytes: 1 to 1 GiB; 65,536 by default. One read fills one segment, which has at
    /// least 262,144 bytes, or the length of the file if that is less, so a parser meets few boundaries; less if a <see cref="Pool"/> gives
    /// less, or at the beginning of a file of unknown length. Below 512 the option is the maximum size instead; tests of parsers use that.
    /// </summary>
    public int BufferSize { get; init; } = DefaultBufferSize;

    /// <summary>
    /// The file offset of the first byte to read, in bytes; 0 by default. Any other value throws <see cref="NotSupportedException"/> if the
    /// file cannot seek.
    /// </summary>
    public long Offset
    {
        get => _offset;
        init => _offset = value;
    }

    /// <summary>The maximum number of bytes to read; <see langword="null"/>, the default, reads to the end of the file.</summary>
    public long? Length
    {
        get => _length;
        init => _length = value;
    }

    /// <summary>
    /// Whether a handle that you passed stays open when the reader is completed; <see langword="false"/> by default. The reader always
    /// closes a file that it has opened by path.
    /// </summary>
    /// <remarks>
    /// On Windows the portable back end binds a handle for overlapped I/O to the runtime's completion port for as long as the handle
    /// exists. docs/windows.md says what this means for your own calls on the handle.
    /// </remarks>
    public bool LeaveOpen { get; init; }

    /// <summary>
    /// The pool that memory comes from; <see langword="null"/>, the default, is the library's own pool, which pins its memory once and
    /// reuses it.
    /// </summary>
    public MemoryPool<byte>? Pool { get; init; }

    /// <summary>
    /// The number of buffered bytes at which reading ahead pauses; 0, the default, switches reading ahead off. Another thread reads ahead
    /// while your program works on the bytes that it has. A read that has begun is finished. So up to 262,144 bytes more may be buffered,
    /// or <see cref="BufferSize"/> if that is larger.
    /// </summary>
    public long PauseReadAheadThreshold { get; init; }

    /// <summary>
    /// The number of buffered bytes at which reading ahead resumes; 0, the default, means half of <see cref="PauseReadAheadThreshold"/>. It
    /// must not exceed that threshold.
    /// </summary>
    public long ResumeReadAheadThreshold { get; init; }

    /// <summary>
    /// Whether the reader waits for more at the end of the file, instead of completing; <see langword="false"/> by default. It completes,
    /// after the last byte, when the file was renamed, deleted or replaced, or became shorter than the bytes that were read. A loop that
    /// calls <see cref="FilePipeReader.Create(string, FilePipeReaderOptions?)"/> again then continues with the next file.
    /// </summary>
    /// <remarks>
    /// <para>A writer may continue to write to a renamed file. So the reader reads it until nothing has come for a fifth of
    /// <see cref="FollowInterval"/> if the new file of that name holds bytes, and for four intervals if the new file is empty or missing.
    /// Bytes that come later are not read. A file that is truncated and grows past the old position between two polls cannot be
    /// distinguished from one that has only grown.</para>
    /// <para>A handle has no name: the reader notices only that the file grows or shrinks. FIFOs, devices and files of /proc have an end of
    /// their own, so the option has no effect on them.</para>
    /// </remarks>
    public bool Follow { get; init; }

    /// <summary>
    /// How often the reader polls a followed file when the system does not report changes: on network file systems, if no inotify watch
    /// is left (/proc/sys/fs/inotify/max_user_watches), and on systems other than Linux. 250 ms by default; 1 ms to 1 day. On Linux the
    /// reader notices growth at once. It checks the name every four intervals, and so notices that a folder above the file was renamed.
    /// </summary>
    public TimeSpan FollowInterval { get; init; } = TimeSpan.FromMilliseconds(DefaultFollowMilliseconds);

    /// <summary>
    /// Whether opening waits for a file that does not exist yet, or its folder does not; <see langword="false"/> by default. It tries again
    /// at every <see cref="FollowInterval"/>, until it is canceled. For <see cref="FilePipeReader.OpenAsync"/> and
    /// <see cref="FilePipeReader.OpenLastLinesAsync"/>: what does not wait throws <see cref="ArgumentException"/>, as the option does
    /// without <see cref="Follow"/>.
    /// </summary>
    public bool WaitForFile { get; init; }

    /// <summary>
    /// What other programs may do with a file that is opened by path, while it is open; as for <see cref="FileStream"/>. The default is
    /// <see cref="FileShare.Read"/>, and <see cref="FileShare.ReadWrite"/> with <see cref="FileShare.Delete"/> for a followed file. Windows
    /// enforces it. On Linux and macOS it is a lock that only .NET programs respect, and only <see cref="FileShare.None"/> keeps them out.
    /// It cannot be set for a handle.
    /// </summary>
    public FileShare Share
    {
        get => _share ?? (Follow ? FileShare.ReadWrite | FileShare.Delete : FileShare.Read);
        init => _share = value;
    }

    /// <summary>
    /// Hints for a file that is opened by path; <see cref="FileOptions.None"/> by default. <see cref="FileOptions.Asynchronous"/> changes
    /// nothing, because the library chooses how it opens the file. The option cannot be set for a handle. FILE_FLAG_NO_BUFFERING
    /// (0x20000000) throws <see cref="NotSupportedException"/> on Windows.
    /// </summary>
    public FileOptions FileOptions { get; init; }

    /// <summary>
    /// What the page cache of the system keeps of the file; <see cref="FileCaching.Keep"/> by default. For a large file that is read once,
    /// <see cref="FileCaching.DropBehind"/> leaves the cache to other files. It is a hint, and has no effect on systems other than Linux.
    /// </summary>
    public FileCaching Caching { get; init; }

    /// <summary>
    /// The back end that reads the file; <see cref="FilePipeBackend.Auto"/>, the default, chooses the best one. A back end that this system
    /// does not have throws <see cref="PlatformNotSupportedException"/> when the file is opened.
    /// </summary>
    public FilePipeBackend Backend { get; init; }

    /// <summary>Resolves the default of <see cref="ResumeReadAheadThreshold"/>.</summary>
    internal long EffectiveResumeThreshold => ResumeReadAheadThreshold == 0 ? PauseReadAheadThreshold / 2 : ResumeReadAheadThreshold;

    /// <summary>When to try again to open the file if it does not exist; <see langword="null"/>: not at all.</summary>
    internal (string Path, TimeSpan Interval)? Missing(string path) => WaitForFile ? (path, FollowInterval) : null;

    /// <summary>Copies these options for another part of the file.</summary>
    internal FilePipeReaderOptions With(long offset, long? length)
    {
        FilePipeReaderOptions copy = (FilePipeReaderOptions)MemberwiseClone();
        copy._offset = offset;
        copy._length = length;
        return copy;
    }

    /// <exception cref="ArgumentException">A value is out of range, or two options do not fit together.</exception>
    internal void Validate()
    {
        Option.RequireWithin(BufferSize, 1, MaxBufferSize);
        ArgumentOutOfRangeException.ThrowIfNegative(Offset);
        Option.RequireWithin(Length ?? 0, 0, long.MaxValue - Offset, nameof(Length));
        ArgumentOutOfRangeException.ThrowIfNegative(PauseReadAheadThreshold);
        ArgumentOutOfRangeException.ThrowIfNegative(ResumeReadAheadThreshold);
        if (FollowInterval.TotalMilliseconds < 1 || FollowInterval.TotalDays > 1)
        {
            throw new ArgumentOutOfRangeException(nameof(FollowInterval), FollowInterval, "From 1 ms to 1 day.");
        }

        Option.Require(Follow || !WaitForFile, "WaitForFile is for a reader that follows: set Follow, too.", nameof(WaitForFile));
        Option.RequireKnown(Share, FileOptions, Caching, Backend);
        if (ResumeReadAheadThreshold > PauseReadAheadThreshold)
        {
            throw new ArgumentOutOfRangeException(nameof(ResumeReadAheadThreshold), ResumeReadAheadThreshold, PauseReadAheadThreshold == 0
                ? "PauseReadAheadThreshold is not set, so the reader does not read ahead. Set it to the bytes that may be read ahead."
                : $"Reading ahead pauses at PauseReadAheadThreshold ({PauseReadAheadThreshold} bytes), so it cannot resume at more bytes.");
        }
    }

    /// <exception cref="ArgumentException">An option is for a file that is opened by path.</exception>
    internal void ValidateForHandle()
    {
        Option.RequireNoHandle((_share ?? FileShare.Read) != FileShare.Read, nameof(Share));
        Option.RequireNoHandle(FileOptions != FileOptions.None, nameof(FileOptions));
        Option.RequireNoHandle(WaitForFile, nameof(WaitForFile));
    }
}
