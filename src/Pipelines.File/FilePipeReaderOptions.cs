using System.Buffers;
using System.IO.Pipelines;

namespace Pipelines.File;

/// <summary>How a <see cref="FilePipeReader"/> reads. An instance is immutable, checked where it is used, and may be shared by any number of readers.</summary>
public sealed class FilePipeReaderOptions
{
    /// <summary>The default of <see cref="BufferSize"/>, bytes.</summary>
    internal const int DefaultBufferSize = 64 * 1024;

    /// <summary>The largest <see cref="BufferSize"/>, bytes.</summary>
    internal const int MaxBufferSize = 1024 * 1024 * 1024;

    private const int DefaultFollowMilliseconds = 250;

    private readonly FileShare? _share;
    private readonly long _length;
    private readonly bool _hasLength;

    internal static FilePipeReaderOptions Default { get; } = new();

    /// <summary>
    /// Bytes of one segment, which is one piece of memory of <see cref="ReadResult.Buffer"/>: 1 to 1 GiB, 65,536 by default. A small value costs little, because one
    /// system call fills many segments; a file that is smaller gets a smaller segment. On Windows, and with <see cref="FilePipeBackend.Portable"/>, a call fills a single segment, which
    /// then has 262,144 bytes at least.
    /// </summary>
    public int BufferSize { get; init; } = DefaultBufferSize;

    /// <summary>The file offset of the first byte to read, in bytes; 0 by default. Anything but 0 throws <see cref="NotSupportedException"/> for a file that cannot seek.</summary>
    public long Offset { get; init; }

    /// <summary>Read at most this many bytes and end there; <see langword="null"/>, the default, reads to the end of the file.</summary>
    public long? Length
    {
        get => _hasLength ? _length : null;
        init => (_hasLength, _length) = (value is not null, value.GetValueOrDefault());
    }

    /// <summary>Leaves a handle that the caller passed open when the reader is completed; <see langword="false"/> by default. Files opened by path are always closed.</summary>
    /// <remarks>
    /// Windows: a handle for overlapped I/O (<see cref="Microsoft.Win32.SafeHandles.SafeFileHandle.IsAsync"/>) belongs to the runtime's completion port for ever from the first operation on, and the port takes
    /// what arrives for its own. Overlapped calls of the caller's on the same handle, now or later, need an event of their own in the overlapped with its low bit set, which keeps
    /// their completions from the port (GetQueuedCompletionStatus). With <see cref="FilePipeBackend.Overlapped"/> a call that succeeds at once queues no completion at all from then on
    /// (SetFileCompletionNotificationModes), and no <see cref="FileStream"/> or <see cref="RandomAccess"/> call can use the handle any more.
    /// </remarks>
    public bool LeaveOpen { get; init; }

    /// <summary>Where memory comes from; <see langword="null"/>, the default, is the library's own pool, whose memory is pinned once and reused.</summary>
    public MemoryPool<byte>? Pool { get; init; }

    /// <summary>
    /// Reads ahead, on another thread, while the program works on what it has: how many bytes may be buffered before the reading ahead pauses. 0, the default, reads
    /// only when the program asks. A read that was begun below this is finished, so up to 262,144 bytes more may be buffered.
    /// </summary>
    public long PauseReadAheadThreshold { get; init; }

    /// <summary>
    /// Reading ahead goes on when the program has left no more than this many bytes in the buffer; 0, the default, is half of <see cref="PauseReadAheadThreshold"/>, without which it
    /// cannot be set.
    /// </summary>
    public long ResumeReadAheadThreshold { get; init; }

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
    public TimeSpan FollowInterval { get; init; } = TimeSpan.FromMilliseconds(DefaultFollowMilliseconds);

    /// <summary>
    /// What others may do meanwhile with a file that is opened by path, as for <see cref="FileStream"/>; <see cref="FileShare.Read"/> by default, and
    /// <see cref="FileShare.ReadWrite"/> with <see cref="FileShare.Delete"/> where it is followed. Windows enforces it; elsewhere only
    /// .NET programs look at it, and only <see cref="FileShare.None"/> keeps them out. With a handle it cannot be set.
    /// </summary>
    public FileShare Share
    {
        get => _share ?? (Follow ? FileShare.ReadWrite | FileShare.Delete : FileShare.Read);
        init => _share = value;
    }

    /// <summary>
    /// Hints for a file that is opened by path; <see cref="FileOptions.None"/> by default. <see cref="FileOptions.Asynchronous"/> may be given
    /// and changes nothing: the file is opened as the library needs it. With a handle they cannot be set. Windows: FILE_FLAG_NO_BUFFERING (0x20000000), and a handle that is open with it,
    /// throw <see cref="NotSupportedException"/>.
    /// </summary>
    public FileOptions FileOptions { get; init; }

    /// <summary>
    /// How the system is asked for bytes; <see cref="FilePipeBackend.Auto"/>, the default, chooses the best way that there is. One that this system lacks throws
    /// <see cref="PlatformNotSupportedException"/>.
    /// </summary>
    public FilePipeBackend Backend { get; init; }

    /// <summary>Resolves the default of <see cref="ResumeReadAheadThreshold"/>.</summary>
    internal long EffectiveResumeThreshold => ResumeReadAheadThreshold == 0 ? PauseReadAheadThreshold / 2 : ResumeReadAheadThreshold;

    /// <exception cref="ArgumentOutOfRangeException">A value is out of its range.</exception>
    internal void Validate()
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(BufferSize, 1);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(BufferSize, MaxBufferSize);
        ArgumentOutOfRangeException.ThrowIfNegative(Offset);
        if (Length is long length)
        {
            ArgumentOutOfRangeException.ThrowIfNegative(length, nameof(Length));
            ArgumentOutOfRangeException.ThrowIfGreaterThan(length, long.MaxValue - Offset, nameof(Length));
        }

        ArgumentOutOfRangeException.ThrowIfLessThan(FollowInterval, TimeSpan.FromMilliseconds(1));
        ArgumentOutOfRangeException.ThrowIfGreaterThan(FollowInterval, TimeSpan.FromMilliseconds(int.MaxValue));
        ArgumentOutOfRangeException.ThrowIfNegative(PauseReadAheadThreshold);
        ArgumentOutOfRangeException.ThrowIfNegative(ResumeReadAheadThreshold);
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
}
