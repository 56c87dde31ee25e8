using System.Buffers;
using System.IO.Pipelines;

namespace Pipelines.File;

/// <summary>How a <see cref="FilePipeReader"/> reads. An instance is immutable and may be shared by any number of readers. A value that is out of its range throws <see cref="ArgumentOutOfRangeException"/> when it is set; values that do not go together, when a reader is made.</summary>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// FilePipeReaderOptions options = new() { Offset = 4096, Length = 1024 * 1024, FileOptions = FileOptions.SequentialScan };
/// await using FilePipeReader reader = FilePipeReader.Create("data.bin", options);
/// </code>
/// </example>
public sealed record FilePipeReaderOptions
{
    /// <summary>The default of <see cref="BufferSize"/>, bytes.</summary>
    internal const int DefaultBufferSize = 64 * 1024;

    /// <summary>The largest <see cref="BufferSize"/>, bytes.</summary>
    internal const int MaxBufferSize = 1024 * 1024 * 1024;

    private const int DefaultFollowMilliseconds = 250;

    private const FileOptions KnownFileOptions
        = FileOptions.WriteThrough | FileOptions.Asynchronous | FileOptions.RandomAccess | FileOptions.DeleteOnClose | FileOptions.SequentialScan | FileOptions.Encrypted | (FileOptions)0x20000000;

    private readonly int _bufferSize = DefaultBufferSize;
    private readonly long _pauseReadAheadThreshold;
    private readonly long _resumeReadAheadThreshold;
    private readonly TimeSpan _followInterval = TimeSpan.FromMilliseconds(DefaultFollowMilliseconds);
    private readonly FileOptions _fileOptions;
    private readonly FilePipeBackend _backend;
    private readonly FileCaching _caching;
    private readonly FileShare? _share;
    private long _offset;
    private long _length;
    private bool _hasLength;

    internal static FilePipeReaderOptions Default { get; } = new();

    /// <summary>
    /// Bytes of one segment at least, which is one piece of memory of <see cref="ReadResult.Buffer"/>: 1 to 1 GiB, 65,536 by default. The library's own pool gives pieces of 65,536 bytes or
    /// more, so that a parser meets few boundaries; a file that is smaller gets a smaller one. A value under 512, for tests of parsers, and one with a <see cref="Pool"/>, is the most that a segment
    /// has. On Windows, and with <see cref="FilePipeBackend.Portable"/>, a call fills a single segment, which then has 262,144 bytes at least.
    /// </summary>
    public int BufferSize
    {
        get => _bufferSize;
        init => _bufferSize = Within(value, 1, MaxBufferSize, nameof(BufferSize));
    }

    /// <summary>The file offset of the first byte to read, in bytes; 0 by default. Anything but 0 throws <see cref="NotSupportedException"/> for a file that cannot seek.</summary>
    public long Offset
    {
        get => _offset;
        init => _offset = Within(value, 0, long.MaxValue, nameof(Offset));
    }

    /// <summary>Read at most this many bytes and end there; <see langword="null"/>, the default, reads to the end of the file.</summary>
    public long? Length
    {
        get => _hasLength ? _length : null;
        init => (_hasLength, _length) = (value is not null, Within(value.GetValueOrDefault(), 0, long.MaxValue, nameof(Length)));
    }

    /// <summary>Leaves a handle that the caller passed open when the reader is completed; <see langword="false"/> by default. Files opened by path are always closed.</summary>
    /// <remarks>
    /// Windows: a handle for overlapped I/O (<see cref="Microsoft.Win32.SafeHandles.SafeFileHandle.IsAsync"/>) belongs to the runtime's completion port for ever from the first operation on, and the port takes
    /// what arrives for its own. Overlapped calls of the caller's on the same handle, now or later, need an event of their own in the overlapped with its low bit set, which keeps
    /// their completions from the port (GetQueuedCompletionStatus). With <see cref="FilePipeBackend.Overlapped"/> a call that succeeds at once queues no completion at all from then on
    /// (SetFileCompletionNotificationModes), and no <see cref="FileStream"/> or <see cref="RandomAccess"/> call can use the handle any more.
    /// </remarks>
    public bool LeaveOpen { get; init; }

    /// <summary>
    /// Where memory comes from; <see langword="null"/>, the default, is the library's own pool, whose memory is pinned once and reused. A file whose reads cannot be given up
    /// (<see cref="FilePipeBackend.Portable"/>, a pipe) gets the library's own in any case, as the system may write to it after <see cref="FilePipeReader.CompleteAsync"/>.
    /// </summary>
    public MemoryPool<byte>? Pool { get; init; }

    /// <summary>
    /// Reads ahead, on another thread, while the program works on what it has: how many bytes may be buffered before the reading ahead pauses. 0, the default, reads
    /// only when the program asks. A read that was begun below this is finished, so up to 262,144 bytes more may be buffered. A copy into a <see cref="PipeWriter"/> reads into the writer's memory,
    /// and nothing ahead.
    /// </summary>
    public long PauseReadAheadThreshold
    {
        get => _pauseReadAheadThreshold;
        init => _pauseReadAheadThreshold = Within(value, 0, long.MaxValue, nameof(PauseReadAheadThreshold));
    }

    /// <summary>
    /// Reading ahead goes on when the program has left no more than this many bytes in the buffer; 0, the default, is half of <see cref="PauseReadAheadThreshold"/>, without which it
    /// cannot be set.
    /// </summary>
    public long ResumeReadAheadThreshold
    {
        get => _resumeReadAheadThreshold;
        init => _resumeReadAheadThreshold = Within(value, 0, long.MaxValue, nameof(ResumeReadAheadThreshold));
    }

    /// <summary>
    /// Waits at the end of the file for more, instead of completing; <see langword="false"/> by default. The reader completes, after every byte, when the file has become shorter than what was
    /// read, and when its name means another file, or none: it was renamed, deleted or replaced. Then a loop around <see cref="FilePipeReader.Create(string, FilePipeReaderOptions?)"/> goes on
    /// with the next file.
    /// </summary>
    /// <remarks>
    /// <para>As a writer may go on with a file that was renamed, it is read until nothing has come for a fifth of <see cref="FollowInterval"/> if the file that has its name now holds bytes, and for four
    /// intervals if that is empty or missing. What comes later is not read. A file that is cut and grows past what was read between two looks cannot be told from one that has only grown.</para>
    /// <para>A handle of the caller's has no name here: it waits for growing and shrinking only. A FIFO, a device and a file that the system makes up (/proc) have an end of their own, and are read as ever.</para>
    /// </remarks>
    public bool Follow { get; init; }

    /// <summary>
    /// How often a followed file is looked at where the system does not tell of changes: on network file systems, where it has no watch left (inotify(7),
    /// /proc/sys/fs/inotify/max_user_watches), and everywhere but on Linux. 250 ms by default; 1 ms to 24 days. Elsewhere growth is noticed at once, and its name is looked at after
    /// four intervals, which finds a folder above it that was renamed.
    /// </summary>
    public TimeSpan FollowInterval
    {
        get => _followInterval;
        init => _followInterval = Within(value, TimeSpan.FromMilliseconds(1), TimeSpan.FromMilliseconds(int.MaxValue), nameof(FollowInterval));
    }

    /// <summary>
    /// What others may do meanwhile with a file that is opened by path, as for <see cref="FileStream"/>; <see cref="FileShare.Read"/> by default, and
    /// <see cref="FileShare.ReadWrite"/> with <see cref="FileShare.Delete"/> where it is followed. Windows enforces it; elsewhere only
    /// .NET programs look at it, and only <see cref="FileShare.None"/> keeps them out. With a handle it cannot be set.
    /// </summary>
    public FileShare Share
    {
        get => _share ?? (Follow ? FileShare.ReadWrite | FileShare.Delete : FileShare.Read);
        init => _share = (value & ~(FileShare.ReadWrite | FileShare.Delete | FileShare.Inheritable)) == 0 ? value : throw new ArgumentOutOfRangeException(nameof(Share), value, null);
    }

    /// <summary>
    /// Hints for a file that is opened by path; <see cref="FileOptions.None"/> by default. <see cref="FileOptions.Asynchronous"/> may be given
    /// and changes nothing: the file is opened as the library needs it. With a handle they cannot be set. Windows: FILE_FLAG_NO_BUFFERING (0x20000000), and a handle that is open with it,
    /// throw <see cref="NotSupportedException"/>.
    /// </summary>
    public FileOptions FileOptions
    {
        get => _fileOptions;
        init => _fileOptions = (value & ~KnownFileOptions) == 0 ? value : throw new ArgumentOutOfRangeException(nameof(FileOptions), value, null);
    }

    /// <summary>
    /// What the system's page cache keeps of what is read; <see cref="FileCaching.Keep"/> by default. <see cref="FileCaching.DropBehind"/>, for a large file that is read once, is a hint
    /// that only Linux takes.
    /// </summary>
    public FileCaching Caching
    {
        get => _caching;
        init => _caching = Enum.IsDefined(value) ? value : throw new ArgumentOutOfRangeException(nameof(Caching), value, null);
    }

    /// <summary>
    /// How the system is asked for bytes; <see cref="FilePipeBackend.Auto"/>, the default, chooses the best way that there is. One that this system lacks throws
    /// <see cref="PlatformNotSupportedException"/>.
    /// </summary>
    public FilePipeBackend Backend
    {
        get => _backend;
        init => _backend = Enum.IsDefined(value) ? value : throw new ArgumentOutOfRangeException(nameof(Backend), value, null);
    }

    /// <summary>Resolves the default of <see cref="ResumeReadAheadThreshold"/>.</summary>
    internal long EffectiveResumeThreshold => ResumeReadAheadThreshold == 0 ? PauseReadAheadThreshold / 2 : ResumeReadAheadThreshold;

    /// <summary>The same for another part of the file.</summary>
    internal FilePipeReaderOptions With(long offset, long? length)
    {
        FilePipeReaderOptions copy = (FilePipeReaderOptions)MemberwiseClone();
        copy._offset = offset;
        (copy._hasLength, copy._length) = (length is not null, length.GetValueOrDefault());
        return copy;
    }

    /// <exception cref="ArgumentOutOfRangeException">Values do not go together.</exception>
    internal void Validate()
    {
        if (Length > long.MaxValue - Offset)
        {
            throw new ArgumentOutOfRangeException(nameof(Length), Length, "Offset and Length together are beyond the longest file.");
        }

        if (ResumeReadAheadThreshold > PauseReadAheadThreshold)
        {
            throw new ArgumentOutOfRangeException(
                nameof(ResumeReadAheadThreshold),
                ResumeReadAheadThreshold,
                PauseReadAheadThreshold == 0
                    ? $"{nameof(PauseReadAheadThreshold)} is not set, so nothing is read ahead that could resume. Set it to the bytes that may be read ahead."
                    : $"Reading ahead pauses at {nameof(PauseReadAheadThreshold)} ({PauseReadAheadThreshold} bytes) and resumes when fewer are left, not when more are.");
        }
    }

    /// <exception cref="ArgumentException">An option is for a file that is opened by path.</exception>
    internal void ValidateForHandle()
    {
        string? option = (_share ?? FileShare.Read) != FileShare.Read ? nameof(Share) : FileOptions != FileOptions.None ? nameof(FileOptions) : null;
        if (option is not null)
        {
            throw new ArgumentException($"{option} is for a file that is opened by path. A handle is open already.", option);
        }
    }

    private static T Within<T>(T value, T least, T most, string option)
        where T : IComparable<T>
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(value, least, option);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(value, most, option);
        return value;
    }
}
