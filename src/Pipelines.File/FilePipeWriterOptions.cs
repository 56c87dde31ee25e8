using Pipelines.File.IO;

namespace Pipelines.File;

/// <summary>
/// How a <see cref="FilePipeWriter"/> writes. An instance is immutable, and any number of writers may share it. When a writer is
/// created, a value that is out of range throws <see cref="ArgumentOutOfRangeException"/>, and options that contradict each other throw
/// <see cref="ArgumentException"/>.
/// </summary>
/// <example>
/// <code>
/// using System.Buffers;
/// using Pipelines.File;
///
/// FilePipeWriterOptions options = new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable };
/// await using FilePipeWriter writer = FilePipeWriter.Create("settings.json", options);
/// writer.Write("{}"u8);
/// await writer.CompleteAsync();
/// </code>
/// </example>
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
    /// How a file that is given by path is opened or created; <see cref="FileMode.Create"/> by default, which empties an existing file. For
    /// a handle only <see cref="FileMode.Append"/> can be set: the writer then begins at the end of the file.
    /// </summary>
    /// <remarks>
    /// With <see cref="FileMode.Append"/> every write goes to the end of the file, even if other programs append to it, too (O_APPEND,
    /// FILE_APPEND_DATA). The bytes of one flush, up to 65,536, go out in one write; small flushes share writes of up to 4,096 bytes. A
    /// process that is killed may leave a part of a write.
    /// </remarks>
    public FileMode Mode { get; init; } = FileMode.Create;

    /// <summary>
    /// What other programs may do with a file that is opened by path, while it is open; as for <see cref="FileStream"/>. The default is
    /// <see cref="FileShare.Read"/>. Windows enforces it. On Linux and macOS it is a lock that only .NET programs respect, and only
    /// <see cref="FileShare.None"/> keeps them out. It cannot be set for a handle.
    /// </summary>
    public FileShare Share { get; init; } = FileShare.Read;

    /// <summary>
    /// Hints for a file that is opened by path; <see cref="FileOptions.None"/> by default. <see cref="FileOptions.Asynchronous"/> changes
    /// nothing, because the library chooses how it opens the file. The option cannot be set for a handle. FILE_FLAG_NO_BUFFERING
    /// (0x20000000) throws <see cref="NotSupportedException"/> on Windows.
    /// </summary>
    public FileOptions FileOptions { get; init; }

    /// <summary>
    /// The number of bytes to reserve on the device for a file that is created by path; 0, the default, reserves none. The reserved space
    /// does not change the final length of the file. The option cannot be set for a handle.
    /// </summary>
    public long PreallocationSize { get; init; }

    /// <summary>
    /// Whether the file appears under its name, whole, only when <see cref="FilePipeWriter.CompleteAsync"/> is called;
    /// <see langword="false"/> by default. Until then an existing file of that name stays as it is. <see cref="FileMode.Create"/> replaces
    /// an existing file; <see cref="FileMode.CreateNew"/> throws <see cref="FileExistsException"/> if there is one. Other modes, and
    /// handles, do not allow this option.
    /// </summary>
    /// <remarks>
    /// <para>A program that opens the file gets the old content or the whole new content, at every moment. The old file stays after
    /// <see cref="FilePipeWriter.Abort"/>, after Dispose without <see cref="FilePipeWriter.CompleteAsync"/>, after
    /// <see cref="FilePipeWriter.Complete"/> with an exception, and after an error.</para>
    /// <para>With <see cref="FlushGuarantee.Durable"/>, content and name are on the device when <see cref="FilePipeWriter.CompleteAsync"/>
    /// returns: the file is synced, then renamed, then its folder is synced. Without it, a power failure soon after may leave the old file,
    /// and on some file systems an empty one.</para>
    /// <para>A stream of <see cref="System.IO.Pipelines.PipeWriter.AsStream"/> completes the writer when the stream is closed, also after
    /// an exception. Pass leaveOpen, and complete the writer when everything has gone well.</para>
    /// <para>A symbolic link stays, and its target is replaced, unless <see cref="ReplacesLinks"/> is set. The new file gets the permission
    /// bits of the replaced one from the first byte on, on Linux its POSIX access list, too, and its owner and group if the process may
    /// give files away; if they change meanwhile, it gets the latest when it takes the name. Other extended attributes are lost, and other
    /// hard links keep the old file. A file without write permission is not replaced. <see cref="Share"/> has no
    /// effect, because no other program knows the unfinished file.</para>
    /// <para>On Linux the unfinished file has no name (O_TMPFILE of open(2)) if the file system supports that, so a process that is killed
    /// leaves nothing. On other systems, and for the moment in which it replaces another file, it is called <c>.pipelines-file-</c> and 16
    /// hexadecimal digits, in the same folder.</para>
    /// </remarks>
    public bool Replace { get; init; }

    /// <summary>
    /// The file offset where the first byte is written, in bytes; <see langword="null"/>, the default, means 0, or the end of the file for
    /// <see cref="FileMode.Append"/>. It cannot be set with that mode. A value other than 0 needs <see cref="FileMode.Open"/>,
    /// <see cref="FileMode.OpenOrCreate"/> or <see cref="FileMode.CreateNew"/> as the <see cref="Mode"/>, and throws
    /// <see cref="NotSupportedException"/> if the file cannot seek.
    /// </summary>
    public long? Offset { get; init; }

    /// <summary>
    /// The Unix permissions of a file that is created by path, reduced by the umask; <see langword="null"/>, the default, means 0666. An
    /// existing file keeps its permissions, also with <see cref="Replace"/>. The option cannot be set for a handle, or with a mode that
    /// does not create files, and throws <see cref="PlatformNotSupportedException"/> on Windows.
    /// </summary>
    public UnixFileMode? UnixCreateMode { get; init; }

    /// <summary>
    /// The minimum size of a new piece of memory, in bytes: 1 to 1 GiB; 65,536 by default. A larger sizeHint of
    /// <see cref="FilePipeWriter.GetMemory"/> gets a larger piece.
    /// </summary>
    public int MinimumBufferSize { get; init; } = DefaultMinimumBufferSize;

    /// <summary>
    /// The pool that memory comes from; <see langword="null"/>, the default, is the library's own pool, which pins its memory once and
    /// reuses it.
    /// </summary>
    public MemoryPool<byte>? Pool { get; init; }

    /// <summary>
    /// Whether a handle that you passed stays open when the writer is completed; <see langword="false"/> by default. The writer always
    /// closes a file that it has opened by path.
    /// </summary>
    /// <remarks>
    /// On Windows the portable back end binds a handle for overlapped I/O to the runtime's completion port for as long as the handle
    /// exists. docs/windows.md says what this means for your own calls on the handle.
    /// </remarks>
    public bool LeaveOpen { get; init; }

    /// <summary>
    /// The number of flushed bytes in memory at which <see cref="FilePipeWriter.FlushAsync(CancellationToken)"/> begins to wait; 1 MiB by
    /// default. 0 makes every flush wait until its bytes are written, as <see cref="FlushGuarantee.Written"/> does.
    /// </summary>
    public long PauseWriterThreshold { get; init; } = DefaultPauseWriterThreshold;

    /// <summary>
    /// The number of flushed bytes in memory at which a flush that had to wait completes; 0, the default, means half of
    /// <see cref="PauseWriterThreshold"/>. It must not exceed that threshold.
    /// </summary>
    public long ResumeWriterThreshold { get; init; }

    /// <summary>
    /// What is true of the bytes when a flush has completed; <see cref="FlushGuarantee.WriteBehind"/> by default. With
    /// <see cref="Replace"/>, <see cref="FlushGuarantee.Durable"/> is true of the whole file when
    /// <see cref="FilePipeWriter.CompleteAsync"/> has completed, and a flush is <see cref="FlushGuarantee.WriteBehind"/>: nothing of an
    /// unfinished file survives a crash.
    /// </summary>
    public FlushGuarantee FlushGuarantee { get; init; }

    /// <summary>
    /// What the page cache of the system keeps of the file; <see cref="FileCaching.Keep"/> by default. For a large file that nobody reads
    /// soon, <see cref="FileCaching.DropBehind"/> leaves the cache to other files. It is a hint, and has no effect on systems other than
    /// Linux.
    /// </summary>
    public FileCaching Caching { get; init; }

    /// <summary>
    /// The back end that writes the file; <see cref="FilePipeBackend.Auto"/>, the default, chooses the best one. A back end that this
    /// system does not have throws <see cref="PlatformNotSupportedException"/> when the file is opened.
    /// </summary>
    public FilePipeBackend Backend { get; init; }

    /// <summary>
    /// With <see cref="Replace"/>, whether a symbolic link of that name is replaced instead of the file that it leads to;
    /// <see langword="false"/> by default. Set it if the name comes from outside, so that no link leads the file out of its folder. It
    /// needs <see cref="Replace"/>.
    /// </summary>
    public bool ReplacesLinks { get; init; }

    /// <summary>The guarantee of a flush that does not ask for one.</summary>
    internal FlushGuarantee OfFlush => Replace && FlushGuarantee == FlushGuarantee.Durable ? FlushGuarantee.WriteBehind : FlushGuarantee;

    /// <summary>Whether a flush makes a short write itself, where that is known to take no longer than a hop to another thread.</summary>
    internal bool WritesHere { get; init; }

    /// <summary>Resolves the default of <see cref="ResumeWriterThreshold"/>.</summary>
    internal long EffectiveResumeThreshold => ResumeWriterThreshold == 0 ? PauseWriterThreshold / 2 : ResumeWriterThreshold;

    private UnixFileMode CreateMode => UnixCreateMode.GetValueOrDefault();

    private void ValidateBoth()
    {
        Option.RequireKnown(Mode is >= FileMode.CreateNew and <= FileMode.Append, (int)Mode, nameof(Mode));
        Option.RequireKnown(Share, FileOptions, Caching, Backend);
        ArgumentOutOfRangeException.ThrowIfNegative(PreallocationSize);
        Option.RequireWithin(Offset ?? 0, 0, long.MaxValue, nameof(Offset));
        Option.RequireKnown((CreateMode & ~Option.AnyMode) == 0, (int)CreateMode, nameof(UnixCreateMode));
        Option.RequireWithin(MinimumBufferSize, 1, MaxMinimumBufferSize);
        ArgumentOutOfRangeException.ThrowIfNegative(PauseWriterThreshold);
        ArgumentOutOfRangeException.ThrowIfNegative(ResumeWriterThreshold);
        Option.RequireKnown(FlushGuarantee is >= 0 and <= FlushGuarantee.Durable, (int)FlushGuarantee, nameof(FlushGuarantee));
        if (UnixCreateMode is not null && OperatingSystem.IsWindows())
        {
            throw new PlatformNotSupportedException("Windows has no Unix permissions.");
        }

        if (ResumeWriterThreshold > PauseWriterThreshold)
        {
            throw new ArgumentOutOfRangeException(nameof(ResumeWriterThreshold), ResumeWriterThreshold,
                $"ResumeWriterThreshold ({ResumeWriterThreshold}) must not exceed PauseWriterThreshold ({PauseWriterThreshold}).");
        }

        Option.Require(Replace || !ReplacesLinks, "ReplacesLinks needs Replace: without it a link is followed.", nameof(ReplacesLinks));
        Option.Require(!Replace || Mode is FileMode.Create or FileMode.CreateNew,
            "Replace makes a whole new file, so Mode has to be Create or CreateNew.", nameof(Mode));
        Option.Require(!Replace || Offset is null or 0, "Replace makes a whole new file, so Offset has to be 0.", nameof(Offset));
        Option.Require(!Replace || (FileOptions & FileOptions.DeleteOnClose) == 0,
            "Replace makes a file that is to stay, so DeleteOnClose cannot be set.", nameof(FileOptions));
        Option.Require(Mode != FileMode.Append || Offset is null,
            "FileMode.Append writes to the end of the file, so Offset cannot be set.", nameof(Offset));
    }

    /// <exception cref="ArgumentException">Two options contradict each other.</exception>
    internal void ValidateForPath()
    {
        ValidateBoth();
        if (Offset is not (null or 0) && Mode is FileMode.Create or FileMode.Truncate)
        {
            throw new ArgumentException($"FileMode.{Mode} empties the file before anything is written at Offset {Offset}: "
                + "use Open or OpenOrCreate, which keep it, or CreateNew.", nameof(Mode));
        }

        Option.Require(UnixCreateMode is null || Mode is not (FileMode.Open or FileMode.Truncate),
            "FileMode.Open and FileMode.Truncate do not create a file, so UnixCreateMode cannot be set.", nameof(UnixCreateMode));
    }

    /// <exception cref="ArgumentException">Two options contradict each other, or one is for a file that is opened by path.</exception>
    internal void ValidateForHandle()
    {
        ValidateBoth();
        Option.RequireNoHandle(Mode is not (FileMode.Create or FileMode.Append), nameof(Mode));
        Option.RequireNoHandle(Share != FileShare.Read, nameof(Share));
        Option.RequireNoHandle(FileOptions != FileOptions.None, nameof(FileOptions));
        Option.RequireNoHandle(PreallocationSize != 0, nameof(PreallocationSize));
        Option.RequireNoHandle(Replace, nameof(Replace));
        Option.RequireNoHandle(UnixCreateMode is not null, nameof(UnixCreateMode));
    }
}
