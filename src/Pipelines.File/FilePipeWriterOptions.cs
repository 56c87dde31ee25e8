using System.Buffers;

namespace Pipelines.File;

/// <summary>How a <see cref="FilePipeWriter"/> writes. An instance is immutable, checked where it is used, and may be shared by any number of writers.</summary>
public sealed class FilePipeWriterOptions
{
    /// <summary>The default of <see cref="MinimumBufferSize"/>, bytes.</summary>
    internal const int DefaultMinimumBufferSize = 64 * 1024;

    /// <summary>The largest <see cref="MinimumBufferSize"/>, bytes.</summary>
    internal const int MaxMinimumBufferSize = 1024 * 1024 * 1024;

    /// <summary>The default of <see cref="PauseWriterThreshold"/>, bytes.</summary>
    internal const long DefaultPauseWriterThreshold = 1024 * 1024;

    internal static FilePipeWriterOptions Default { get; } = new();

    /// <summary>
    /// How a file that is given by path is opened or made; <see cref="FileMode.Create"/> by default, which empties a file that is there. With <see cref="FileMode.Append"/> every
    /// write goes to the end of the file, whoever else appends to it (O_APPEND, FILE_APPEND_DATA), and the bytes of one flush, up to 65,536, go out in one write. With a handle only
    /// Append can be set: the writer then begins at the end.
    /// </summary>
    public FileMode Mode { get; init; } = FileMode.Create;

    /// <summary>
    /// What others may do meanwhile with a file that is opened by path, as for <see cref="FileStream"/>; <see cref="FileShare.Read"/> by default. Windows enforces it; elsewhere only
    /// .NET programs look at it, and only <see cref="FileShare.None"/> keeps them out. With a handle it cannot be set.
    /// </summary>
    public FileShare Share { get; init; } = FileShare.Read;

    /// <summary>
    /// Hints for a file that is opened by path; <see cref="FileOptions.None"/> by default. <see cref="FileOptions.Asynchronous"/> may be given
    /// and changes nothing: the file is opened as the library needs it. With a handle they cannot be set. Windows: FILE_FLAG_NO_BUFFERING (0x20000000), and a handle that is open with it,
    /// throw <see cref="NotSupportedException"/>.
    /// </summary>
    public FileOptions FileOptions { get; init; }

    /// <summary>
    /// Bytes to reserve on the device for a file that is made by path, 0 (none) by default. The final length of the file is what was written,
    /// whatever was reserved. With a handle it cannot be set.
    /// </summary>
    public long PreallocationSize { get; init; }

    /// <summary>
    /// Whether the file is written beside its name and appears under it, whole, in <see cref="FilePipeWriter.CompleteAsync"/>; <see langword="false"/> by default. For a file that is
    /// given by path, with <see cref="FileMode.Create"/>, which replaces what is there, or <see cref="FileMode.CreateNew"/>, for which it is a <see cref="FileExistsException"/>.
    /// </summary>
    /// <remarks>
    /// <para>Whoever opens the name gets the old file or the whole new one, at every moment. <see cref="FilePipeWriter.Abort"/>, Dispose without
    /// <see cref="FilePipeWriter.CompleteAsync"/>, <see cref="FilePipeWriter.Complete"/> with an exception, and every error leave what was there, and nothing else. With
    /// <see cref="FlushGuarantee.Durable"/> file and name are on the device when <see cref="FilePipeWriter.CompleteAsync"/> returns: the file is synced, then renamed, then its folder is
    /// synced; without, a power failure soon after may leave the old file, and on some file systems an empty one.</para>
    /// <para>A stream of <see cref="System.IO.Pipelines.PipeWriter.AsStream"/> completes the writer when it is closed, also on the way out of an exception: pass leaveOpen, and complete the
    /// writer where all has gone well.</para>
    /// <para>A symbolic link stays, and its target is replaced. The permission bits of the file that is replaced are kept from the start, its owner and group where the process
    /// may give files away; access control lists and extended attributes are not, and other hard links to it keep the old file. A file that may not be written is not
    /// replaced. <see cref="Share"/> has no meaning: nobody knows the name.</para>
    /// <para>On Linux the unfinished file has no name (O_TMPFILE of open(2)) where the file system can do that, so that a process that is killed leaves nothing, but for the instant in
    /// which it replaces another. Elsewhere, and then, its name is <c>.pipelines-file-</c> and 16 hexadecimal digits, in the folder of the file.</para>
    /// </remarks>
    public bool Replace { get; init; }

    /// <summary>
    /// The file offset where the first byte goes, in bytes; <see langword="null"/>, the default, is 0, or the end of the file for <see cref="FileMode.Append"/>, with which it cannot be
    /// set. Anything but 0 needs a <see cref="Mode"/> that keeps or makes the file: <see cref="FileMode.Open"/>, <see cref="FileMode.OpenOrCreate"/>,
    /// <see cref="FileMode.CreateNew"/>. It throws <see cref="NotSupportedException"/> for a file that cannot seek.
    /// </summary>
    public long? Offset { get; init; }

    /// <summary>The least bytes of a new piece of memory, 1 to 1 GiB; 65,536 by default. A larger sizeHint of <see cref="FilePipeWriter.GetMemory"/> gets a larger piece.</summary>
    public int MinimumBufferSize { get; init; } = DefaultMinimumBufferSize;

    /// <summary>Where memory comes from; <see langword="null"/>, the default, is the library's own pool, whose memory is pinned once and reused.</summary>
    public MemoryPool<byte>? Pool { get; init; }

    /// <summary>Leaves a handle that the caller passed open when the writer is completed; <see langword="false"/> by default. Files opened by path are always closed.</summary>
    /// <remarks>
    /// Windows: a handle for overlapped I/O (<see cref="Microsoft.Win32.SafeHandles.SafeFileHandle.IsAsync"/>) belongs to the runtime's completion port for ever from the first operation on, and the port takes
    /// what arrives for its own. Overlapped calls of the caller's on the same handle, now or later, need an event of their own in the overlapped with its low bit set, which keeps
    /// their completions from the port (GetQueuedCompletionStatus). With <see cref="FilePipeBackend.Overlapped"/> a call that succeeds at once queues no completion at all from then on
    /// (SetFileCompletionNotificationModes), and no <see cref="FileStream"/> or <see cref="RandomAccess"/> call can use the handle any more.
    /// </remarks>
    public bool LeaveOpen { get; init; }

    /// <summary>
    /// How many flushed bytes may wait in memory to be written: when there are this many, <see cref="FilePipeWriter.FlushAsync(CancellationToken)"/> waits. 1 MiB by default. 0 makes
    /// every flush wait until its bytes are written, as <see cref="FlushGuarantee.Written"/> does.
    /// </summary>
    public long PauseWriterThreshold { get; init; } = DefaultPauseWriterThreshold;

    /// <summary>
    /// A flush that had to wait completes when no more than this many bytes are left to be written; 0, the default, is half of <see cref="PauseWriterThreshold"/>.
    /// </summary>
    public long ResumeWriterThreshold { get; init; }

    /// <summary>What a completed flush promises; <see cref="FlushGuarantee.WriteBehind"/> by default.</summary>
    public FlushGuarantee FlushGuarantee { get; init; }

    /// <summary>
    /// How the system is asked to write; <see cref="FilePipeBackend.Auto"/>, the default, chooses the best way that there is. One that this system lacks throws
    /// <see cref="PlatformNotSupportedException"/>.
    /// </summary>
    public FilePipeBackend Backend { get; init; }

    /// <summary>The permissions of a new file with <see cref="Replace"/>, less the umask, on Unix; those of every new file (0666) by default.</summary>
    internal UnixFileMode? UnixCreateMode { get; init; }

    /// <summary>With <see cref="Replace"/>, whether a symbolic link of that name is replaced itself: for uploads, which are not to leave their folder.</summary>
    internal bool ReplacesLinks { get; init; }

    /// <summary>Resolves the default of <see cref="ResumeWriterThreshold"/>.</summary>
    internal long EffectiveResumeThreshold => ResumeWriterThreshold == 0 ? PauseWriterThreshold / 2 : ResumeWriterThreshold;

    /// <exception cref="ArgumentException">A value is out of its range, or contradicts another.</exception>
    internal void Validate()
    {
        if (Mode is < FileMode.CreateNew or > FileMode.Append)
        {
            throw new ArgumentOutOfRangeException(nameof(Mode), Mode, "Not a FileMode.");
        }

        ArgumentOutOfRangeException.ThrowIfNegative(PreallocationSize);
        if (Offset is long offset)
        {
            ArgumentOutOfRangeException.ThrowIfNegative(offset, nameof(Offset));
        }

        ArgumentOutOfRangeException.ThrowIfLessThan(MinimumBufferSize, 1);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(MinimumBufferSize, MaxMinimumBufferSize);
        ArgumentOutOfRangeException.ThrowIfNegative(PauseWriterThreshold);
        ArgumentOutOfRangeException.ThrowIfNegative(ResumeWriterThreshold);
        if (ResumeWriterThreshold > PauseWriterThreshold)
        {
            throw new ArgumentOutOfRangeException(
                nameof(ResumeWriterThreshold),
                ResumeWriterThreshold,
                $"A flush that waits from {nameof(PauseWriterThreshold)} on ({PauseWriterThreshold} bytes) goes on when fewer are left, not when more are.");
        }

        if (FlushGuarantee is < FlushGuarantee.WriteBehind or > FlushGuarantee.Durable)
        {
            throw new ArgumentOutOfRangeException(nameof(FlushGuarantee), FlushGuarantee, "Not a FlushGuarantee.");
        }

        if (Replace)
        {
            ValidateReplace();
        }
    }

    private void ValidateReplace()
    {
        if (Mode is not (FileMode.Create or FileMode.CreateNew))
        {
            throw new ArgumentException($"{nameof(Replace)} goes only with {nameof(FileMode)}.{nameof(FileMode.Create)} and {nameof(FileMode.CreateNew)}: it makes a whole new file.", nameof(Mode));
        }

        if (Offset is > 0)
        {
            throw new ArgumentException($"{nameof(Replace)} makes a whole new file, which begins at 0.", nameof(Offset));
        }

        if ((FileOptions & FileOptions.DeleteOnClose) != 0)
        {
            throw new ArgumentException($"A file that {nameof(Replace)} makes is not to be deleted when it is closed.", nameof(FileOptions));
        }
    }

    /// <exception cref="ArgumentException">The file would be emptied first, or the bytes would go elsewhere.</exception>
    internal void ValidateForPath()
    {
        if (Offset is not (null or 0) && Mode is FileMode.Create or FileMode.Truncate)
        {
            throw new ArgumentException(
                $"{nameof(FileMode)}.{Mode} empties the file before anything is written at {nameof(Offset)} {Offset}: use {nameof(FileMode.Open)} or {nameof(FileMode.OpenOrCreate)}, which keep it, or {nameof(FileMode.CreateNew)}.",
                nameof(Mode));
        }

        ThrowIfOffsetOfAppend();
    }

    /// <exception cref="ArgumentException">An option is for a file that is opened by path.</exception>
    internal void ValidateForHandle()
    {
        string? option = Mode is not (FileMode.Create or FileMode.Append) ? nameof(Mode)
            : Share != FileShare.Read ? nameof(Share)
            : FileOptions != FileOptions.None ? nameof(FileOptions)
            : PreallocationSize != 0 ? nameof(PreallocationSize)
            : null;
        if (option is not null)
        {
            throw new ArgumentException($"{option} is for a file that is opened by path. A handle is open already.", option);
        }

        ThrowIfOffsetOfAppend();
    }

    private void ThrowIfOffsetOfAppend()
    {
        if (Offset is not null && Mode == FileMode.Append)
        {
            throw new ArgumentException($"{nameof(FileMode)}.{nameof(FileMode.Append)} writes to the end of the file, wherever that is: {nameof(Offset)} cannot be set.", nameof(Offset));
        }
    }
}
