using System.Buffers;

namespace Pipelines.File;

/// <summary>How a <see cref="FilePipeReader"/> reads. An instance is immutable, checked where it is used, and may be shared by any number of readers.</summary>
public sealed class FilePipeReaderOptions
{
    /// <summary>The default of <see cref="BufferSize"/>, bytes.</summary>
    internal const int DefaultBufferSize = 64 * 1024;

    /// <summary>The largest <see cref="BufferSize"/>, bytes.</summary>
    internal const int MaxBufferSize = 1024 * 1024 * 1024;

    internal static FilePipeReaderOptions Default { get; } = new();

    /// <summary>
    /// Bytes of one segment of the buffer, 1 to 1 GiB; 65,536 by default. One system call fills several small segments, so a small value
    /// costs little; a file that is smaller than this gets a smaller segment. Where a call fills one segment only (Windows), segments hold a whole read.
    /// </summary>
    public int BufferSize { get; init; } = DefaultBufferSize;

    /// <summary>The file offset of the first byte to read, in bytes; 0 by default. Anything but 0 throws <see cref="NotSupportedException"/> for a file that cannot seek.</summary>
    public long Offset { get; init; }

    /// <summary>Read at most this many bytes and end there; <see langword="null"/>, the default, reads to the end of the file.</summary>
    public long? Length { get; init; }

    /// <summary>Leaves a handle that the caller passed open when the reader is completed; <see langword="false"/> by default. Files opened by path are always closed.</summary>
    public bool LeaveOpen { get; init; }

    /// <summary>Where segments come from; <see langword="null"/>, the default, is the library's own pool, whose memory is pinned once and reused.</summary>
    public MemoryPool<byte>? Pool { get; init; }

    /// <summary>
    /// Bytes that may be read ahead in the background, on another thread, before the reading pauses; 0, the default, reads only when asked.
    /// At most this much plus one read is ever buffered on the library's own account.
    /// </summary>
    public long PauseReadAheadThreshold { get; init; }

    /// <summary>Reading ahead resumes when no more than this many bytes are buffered; 0, the default, is half of <see cref="PauseReadAheadThreshold"/>.</summary>
    public long ResumeReadAheadThreshold { get; init; }

    /// <summary>What others may do with a file that is opened by path, as for <see cref="FileStream"/>; <see cref="FileShare.Read"/> by default.</summary>
    public FileShare Share { get; init; } = FileShare.Read;

    /// <summary>
    /// Hints for a file that is opened by path; <see cref="FileOptions.None"/> by default. <see cref="FileOptions.Asynchronous"/> may be given
    /// and changes nothing: the back end opens the file as it needs it.
    /// </summary>
    public FileOptions FileOptions { get; init; }

    /// <summary>The back end; <see cref="FilePipeBackend.Auto"/> by default. One that this system lacks throws <see cref="PlatformNotSupportedException"/>.</summary>
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

        ArgumentOutOfRangeException.ThrowIfNegative(PauseReadAheadThreshold);
        ArgumentOutOfRangeException.ThrowIfNegative(ResumeReadAheadThreshold);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(ResumeReadAheadThreshold, PauseReadAheadThreshold);
    }
}
