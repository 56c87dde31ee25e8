using System.Buffers;

namespace Pipelines.File;

/// <summary>How a <see cref="FilePipeWriter"/> writes. An instance is immutable and may be shared by any number of writers. A value that is wrong by itself throws
/// <see cref="ArgumentOutOfRangeException"/> where it is set, options that contradict each other throw where they are used.</summary>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// FilePipeWriterOptions options = new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable };
/// await using FilePipeWriter writer = FilePipeWriter.Create("settings.json", options);
/// writer.WriteUtf8("{}");
/// await writer.CompleteAsync();
/// </code>
/// </example>
public sealed record FilePipeWriterOptions
{
    /// <summary>The default of <see cref="MinimumBufferSize"/>, bytes.</summary>
    internal const int DefaultMinimumBufferSize = 64 * 1024;

    /// <summary>The largest <see cref="MinimumBufferSize"/>, bytes.</summary>
    internal const int MaxMinimumBufferSize = 1024 * 1024 * 1024;

    /// <summary>The default of <see cref="PauseWriterThreshold"/>, bytes.</summary>
    internal const long DefaultPauseWriterThreshold = 1024 * 1024;

    // Those of FileStream, FILE_FLAG_NO_BUFFERING among them, which is refused by name.
    private const FileOptions KnownFileOptions = FileOptions.WriteThrough | FileOptions.Asynchronous | FileOptions.RandomAccess | FileOptions.DeleteOnClose | FileOptions.SequentialScan
        | FileOptions.Encrypted | (FileOptions)0x20000000;

    internal static FilePipeWriterOptions Default { get; } = new();

    /// <summary>
    /// How a file that is given by path is opened or made; <see cref="FileMode.Create"/> by default, which empties a file that is there. With <see cref="FileMode.Append"/> every
    /// write goes to the end of the file, whoever else appends to it (O_APPEND, FILE_APPEND_DATA); the bytes of one flush, up to 65,536, go out in one write, and several flushes
    /// share 4,096 bytes at most. A process that is killed may leave a part of a write. With a handle only
    /// Append can be set: the writer then begins at the end.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">It is none of <see cref="FileMode"/>.</exception>
    public FileMode Mode
    {
        get;
        init => field = value is >= FileMode.CreateNew and <= FileMode.Append ? value : throw new ArgumentOutOfRangeException(nameof(Mode), value, "Not a FileMode.");
    } = FileMode.Create;

    /// <summary>
    /// What others may do meanwhile with a file that is opened by path, as for <see cref="FileStream"/>; <see cref="FileShare.Read"/> by default. Windows enforces it; elsewhere only
    /// .NET programs look at it, and only <see cref="FileShare.None"/> keeps them out. With a handle it cannot be set.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">It is none of <see cref="FileShare"/>.</exception>
    public FileShare Share
    {
        get;
        init => field = (value & ~(FileShare.ReadWrite | FileShare.Delete | FileShare.Inheritable)) == 0 ? value : throw new ArgumentOutOfRangeException(nameof(Share), value, "Not a FileShare.");
    } = FileShare.Read;

    /// <summary>
    /// Hints for a file that is opened by path; <see cref="FileOptions.None"/> by default. <see cref="FileOptions.Asynchronous"/> may be given
    /// and changes nothing: the file is opened as the library needs it. With a handle they cannot be set. Windows: FILE_FLAG_NO_BUFFERING (0x20000000), and a handle that is open with it,
    /// throw <see cref="NotSupportedException"/>.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">It has bits that are none of <see cref="System.IO.FileOptions"/>.</exception>
    public FileOptions FileOptions
    {
        get;
        init => field = (value & ~KnownFileOptions) == 0 ? value : throw new ArgumentOutOfRangeException(nameof(FileOptions), value, "Not FileOptions.");
    }

    /// <summary>
    /// Bytes to reserve on the device for a file that is made by path, 0 (none) by default. The final length of the file is what was written,
    /// whatever was reserved. With a handle it cannot be set.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">It is negative.</exception>
    public long PreallocationSize
    {
        get;
        init
        {
            ArgumentOutOfRangeException.ThrowIfNegative(value, nameof(PreallocationSize));
            field = value;
        }
    }

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
    /// <exception cref="ArgumentOutOfRangeException">It is negative.</exception>
    public long? Offset
    {
        get;
        init
        {
            ArgumentOutOfRangeException.ThrowIfNegative(value ?? 0, nameof(Offset));
            field = value;
        }
    }

    /// <summary>
    /// Cuts the file at <see cref="Offset"/> when it is opened, so that nothing older lies behind what is written; <see langword="false"/> by default. For the recovery of a journal. For a file
    /// that is given by path with <see cref="FileMode.Open"/> or <see cref="FileMode.OpenOrCreate"/>; a file that is shorter stays as long as it is. It throws
    /// <see cref="NotSupportedException"/> for a file that cannot seek.
    /// </summary>
    public bool Truncate { get; init; }

    /// <summary>
    /// The permissions of a file that is made by path, less the umask, on Unix; <see langword="null"/>, the default, is 0666. One that is there keeps its own, also with
    /// <see cref="Replace"/>. With a handle, and with a mode that makes no file, it cannot be set.
    /// </summary>
    /// <exception cref="PlatformNotSupportedException">Windows.</exception>
    /// <exception cref="ArgumentOutOfRangeException">It has bits that are none of <see cref="UnixFileMode"/>.</exception>
    public UnixFileMode? UnixCreateMode
    {
        get;
        init
        {
            if (value is not null && OperatingSystem.IsWindows())
            {
                throw new PlatformNotSupportedException("Windows has no Unix permissions.");
            }

            field = ((int?)value & ~0xFFF) is null or 0 ? value : throw new ArgumentOutOfRangeException(nameof(UnixCreateMode), value, "Not a UnixFileMode.");
        }
    }

    /// <summary>The least bytes of a new piece of memory, 1 to 1 GiB; 65,536 by default. A larger sizeHint of <see cref="FilePipeWriter.GetMemory"/> gets a larger piece.</summary>
    /// <exception cref="ArgumentOutOfRangeException">It is out of that range.</exception>
    public int MinimumBufferSize
    {
        get;
        init
        {
            ArgumentOutOfRangeException.ThrowIfLessThan(value, 1, nameof(MinimumBufferSize));
            ArgumentOutOfRangeException.ThrowIfGreaterThan(value, MaxMinimumBufferSize, nameof(MinimumBufferSize));
            field = value;
        }
    } = DefaultMinimumBufferSize;

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
    /// <exception cref="ArgumentOutOfRangeException">It is negative.</exception>
    public long PauseWriterThreshold
    {
        get;
        init
        {
            ArgumentOutOfRangeException.ThrowIfNegative(value, nameof(PauseWriterThreshold));
            field = value;
        }
    } = DefaultPauseWriterThreshold;

    /// <summary>
    /// A flush that had to wait completes when no more than this many bytes are left to be written; 0, the default, is half of <see cref="PauseWriterThreshold"/>.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">It is negative.</exception>
    public long ResumeWriterThreshold
    {
        get;
        init
        {
            ArgumentOutOfRangeException.ThrowIfNegative(value, nameof(ResumeWriterThreshold));
            field = value;
        }
    }

    /// <summary>What a completed flush promises; <see cref="FlushGuarantee.WriteBehind"/> by default.</summary>
    /// <exception cref="ArgumentOutOfRangeException">It is none of <see cref="Pipelines.File.FlushGuarantee"/>.</exception>
    public FlushGuarantee FlushGuarantee
    {
        get;
        init => field = value is >= FlushGuarantee.WriteBehind and <= FlushGuarantee.Durable ? value : throw new ArgumentOutOfRangeException(nameof(FlushGuarantee), value, "Not a FlushGuarantee.");
    }

    /// <summary>
    /// What the system's page cache keeps of what is written; <see cref="FileCaching.Keep"/> by default. <see cref="FileCaching.DropBehind"/>, for a large file that nobody reads soon, is a hint
    /// that only Linux takes.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">It is none of <see cref="FileCaching"/>.</exception>
    public FileCaching Caching
    {
        get;
        init => field = value is FileCaching.Keep or FileCaching.DropBehind ? value : throw new ArgumentOutOfRangeException(nameof(Caching), value, "Not a FileCaching.");
    }

    /// <summary>
    /// How the system is asked to write; <see cref="FilePipeBackend.Auto"/>, the default, chooses the best way that there is. One that this system lacks throws
    /// <see cref="PlatformNotSupportedException"/>.
    /// </summary>
    public FilePipeBackend Backend { get; init; }

    /// <summary>With <see cref="Replace"/>, whether a symbolic link of that name is replaced itself: for uploads, which are not to leave their folder.</summary>
    internal bool ReplacesLinks { get; init; }

    /// <summary>Resolves the default of <see cref="ResumeWriterThreshold"/>.</summary>
    internal long EffectiveResumeThreshold => ResumeWriterThreshold == 0 ? PauseWriterThreshold / 2 : ResumeWriterThreshold;

    private void ValidateBoth()
    {
        if (ResumeWriterThreshold > PauseWriterThreshold)
        {
            throw new ArgumentOutOfRangeException(
                nameof(ResumeWriterThreshold),
                ResumeWriterThreshold,
                $"{nameof(ResumeWriterThreshold)} ({ResumeWriterThreshold}) must not exceed {nameof(PauseWriterThreshold)} ({PauseWriterThreshold}).");
        }

        if (Replace)
        {
            ValidateReplace();
        }

        if (Offset is not null && Mode == FileMode.Append)
        {
            throw new ArgumentException($"{nameof(FileMode)}.{nameof(FileMode.Append)} writes to the end of the file, wherever that is: {nameof(Offset)} cannot be set.", nameof(Offset));
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

    /// <exception cref="ArgumentException">Two options contradict each other.</exception>
    internal void ValidateForPath()
    {
        ValidateBoth();
        if (Offset is not (null or 0) && Mode is FileMode.Create or FileMode.Truncate)
        {
            throw new ArgumentException(
                $"{nameof(FileMode)}.{Mode} empties the file before anything is written at {nameof(Offset)} {Offset}: use {nameof(FileMode.Open)} or {nameof(FileMode.OpenOrCreate)}, which keep it, or {nameof(FileMode.CreateNew)}.",
                nameof(Mode));
        }

        if (Truncate && (Mode is not (FileMode.Open or FileMode.OpenOrCreate)))
        {
            throw new ArgumentException($"{nameof(Truncate)} cuts a file that is kept: {nameof(FileMode)}.{nameof(FileMode.Open)} or {nameof(FileMode.OpenOrCreate)}.", nameof(Truncate));
        }

        if (UnixCreateMode is not null && Mode is (FileMode.Open or FileMode.Truncate))
        {
            throw new ArgumentException($"{nameof(FileMode)}.{Mode} makes no file that {nameof(UnixCreateMode)} could be for.", nameof(UnixCreateMode));
        }
    }

    /// <exception cref="ArgumentException">Two options contradict each other, or one is for a file that is opened by path.</exception>
    internal void ValidateForHandle()
    {
        ValidateBoth();
        string? option = Mode is not (FileMode.Create or FileMode.Append) ? nameof(Mode)
            : Share != FileShare.Read ? nameof(Share)
            : FileOptions != FileOptions.None ? nameof(FileOptions)
            : PreallocationSize != 0 ? nameof(PreallocationSize)
            : Replace ? nameof(Replace)
            : Truncate ? nameof(Truncate)
            : UnixCreateMode is not null ? nameof(UnixCreateMode)
            : null;
        if (option is not null)
        {
            throw new ArgumentException($"{option} is for a file that is opened by path. A handle is open already.", option);
        }
    }
}
