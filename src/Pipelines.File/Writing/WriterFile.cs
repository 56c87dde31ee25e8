using Pipelines.File.IO;
using Pipelines.File.Replace;

namespace Pipelines.File.Writing;

/// <summary>
/// The file of one writer: how it is opened, where its bytes go, and how it is finished. Only the steps of the <see cref="WriteLoop"/>
/// change it. They run one at a time, and <see cref="Close"/> is called once, after the last of them.
/// </summary>
internal sealed class WriterFile
{
    private readonly bool _leaveOpen;

    // Whether closing the file deletes it.
    private readonly bool _isDeleted;

    // Whether opening has made or emptied the file, so that it has no more than what is written.
    private readonly bool _wasEmpty;

    // With Replace: gives the file its name at the end.
    private readonly ReplacementFile? _unfinished;

    // The length, bytes, up to which room is reserved. What is behind the end is freed when the file is closed: by Trim, or by Windows,
    // where this is 0.
    private readonly long _preallocated;

    private WriterFile(OpenedFile file, FilePipeWriterOptions options, long offset, bool leaveOpen, bool isOpenedByPath,
        ReplacementFile? unfinished)
    {
        Opened = file;
        Offset = offset;
        IsChanged = isOpenedByPath && options.Mode != FileMode.Open;
        _wasEmpty = file.IsNew || (isOpenedByPath && options.Mode is FileMode.Create or FileMode.Truncate);
        _leaveOpen = leaveOpen;
        _isDeleted = (options.FileOptions & FileOptions.DeleteOnClose) != 0;
        WritesToMemory = OperatingSystem.IsLinux() && options.Caching == FileCaching.Keep
            && (options.FileOptions & FileOptions.WriteThrough) == 0
            && file.Properties.IsRegular && LocalFileSystems.TakeWrites(file.Properties)
            && (isOpenedByPath || !LibcCalls.IsSynchronous(file.Handle));
        _unfinished = unfinished;
        _preallocated = isOpenedByPath && file.Properties.IsRegular && !OperatingSystem.IsWindows() ? options.PreallocationSize : 0;
    }

    internal OpenedFile Opened { get; }

    /// <summary>The number of the file system that takes the bytes of a regular file; 0 if unknown or none.</summary>
    internal ulong Volume => Opened.Properties.IsRegular ? Opened.Properties.Identity.Volume : 0;

    /// <summary>
    /// The file offset of the writer's first byte. If others append to the file, too, it is corrected after every write, so that the last
    /// byte written is where the system has put it.
    /// </summary>
    internal long Offset { get; private set; }

    /// <summary>Whether opening may have made or emptied the file, as the mode says.</summary>
    internal bool IsChanged { get; }

    /// <summary>Whether the file gets its name at the end only (Replace).</summary>
    internal bool IsUnfinished => _unfinished is not null;

    /// <inheritdoc cref="FilePipeWriter.Create(string, FilePipeWriterOptions?)"/>
    internal static WriterFile Open(string path, FilePipeWriterOptions options, object? calls = null)
    {
        options.ValidateForPath();
        if (options.Replace)
        {
            ReplacementFile unfinished = ReplacementFile.Open(path, options, calls);
            return Of(unfinished.Backend, options, leaveOpen: false, isOpenedByPath: true, unfinished);
        }

        return Of(FileOpening.Open(ToOpen(path, options)), options, leaveOpen: false, isOpenedByPath: true);
    }

    internal static FileToOpen ToOpen(string path, FilePipeWriterOptions options)
        => new(path, options.Mode, FileAccess.Write, options.Share, options.FileOptions)
        {
            Backend = options.Backend,
            PreallocationSize = options.PreallocationSize,
            CreateMode = options.UnixCreateMode,
        };

    /// <inheritdoc cref="FilePipeWriter.Create(SafeFileHandle, FilePipeWriterOptions?)"/>
    internal static WriterFile Attach(SafeFileHandle handle, FilePipeWriterOptions options)
    {
        options.ValidateForHandle();
        OpenedFile file = FileOpening.Attach(options.Backend, handle, FileAccess.Write);
        return file.Appends && options.Offset is not null
            ? throw new ArgumentException("The handle is open for appending, so its bytes go to the end of the file: Offset cannot be set.",
                nameof(options))
            : Of(file, options, options.LeaveOpen, isOpenedByPath: false);
    }

    /// <inheritdoc cref="FilePipeWriter.OpenStandardOutput"/>
    internal static WriterFile OpenStandardOutput(FilePipeWriterOptions options)
    {
        options.ValidateForHandle();
        if (options.Mode != FileMode.Create || options.Offset is not null)
        {
            throw new ArgumentException("Mode and Offset cannot be set for standard output: it is written to where the shell has stopped.",
                nameof(options));
        }

        return Of(FileOpening.OpenStandard(options.Backend, isOutput: true), options, leaveOpen: true, isOpenedByPath: false);
    }

    /// <summary>
    /// Takes an open file. The writer begins at its end if it appends, else at the Offset of the options, or at the position of a standard
    /// stream.
    /// </summary>
    internal static WriterFile Of(
        OpenedFile file, FilePipeWriterOptions options, bool leaveOpen, bool isOpenedByPath, ReplacementFile? unfinished = null)
    {
        file.RequireOffset(options.Offset ?? 0, nameof(FilePipeWriterOptions), closeHandle: isOpenedByPath);
        try
        {
            long start = options.Mode == FileMode.Append || file.Appends ? file.Properties.Length
                : file.SharesPosition ? file.GetPosition() : 0;
            if (options.Caching == FileCaching.DropBehind)
            {
                file.DropBehind(isWriter: true);
            }

            return new WriterFile(file, options, options.Offset ?? start, leaveOpen, isOpenedByPath, unfinished);
        }
        catch
        {
            unfinished?.Dispose();
            file.Release(closeHandle: isOpenedByPath);
            throw;
        }
    }

    /// <summary>Records where the system has put the last bytes, if it tells.</summary>
    /// <param name="written">The number of bytes that the system has taken in all.</param>
    internal void OnWritten(long written)
    {
        if (Opened.EndOfLastWrite is long end and >= 0)
        {
            Offset = end - written;
        }
    }

    /// <summary>
    /// Whether a write copies the bytes into the page cache, and usually waits for nothing else: not for a device (O_SYNC, or
    /// <see cref="FileCaching.DropBehind"/>, which waits for earlier pages), and not for a server. Found out when the file is opened,
    /// because asking a server may wait, too.
    /// </summary>
    internal bool WritesToMemory { get; }

    /// <summary>
    /// Whether the rest of a file of so many bytes is written and closed in less time than a hop to another thread takes: nothing has to be
    /// cut, synced or renamed.
    /// </summary>
    internal bool EndsInMemory(long length)
        => length <= OpenedFile.ShortFile && WritesToMemory && !IsUnfinished && !HasPreallocatedRest(length);

    /// <summary>
    /// Whether closing the file may wait, also if nothing was written: for a server, for the device if more than
    /// <see cref="OpenedFile.ShortFile"/> bytes were written to a file that was emptied (ext4(5), auto_da_alloc) or
    /// <see cref="FileCaching.DropBehind"/> begins to write the last ones, for the name that an unfinished file gets, or for the room that
    /// is freed, be it reserved or that of a file that is deleted.
    /// </summary>
    internal bool MayWaitToClose(long written)
        => HasPreallocatedRest(written) || (Opened.CanSeek
            && (!WritesToMemory || IsUnfinished || _isDeleted || (written > OpenedFile.ShortFile && !_leaveOpen && !Opened.IsNew)
                || (!_leaveOpen && Opened.IsClosedElsewhere(isShort: _wasEmpty && written <= OpenedFile.ShortFile))));

    /// <summary>Whether preallocated length is left after the written bytes.</summary>
    internal bool HasPreallocatedRest(long written) => _preallocated > EndOf(written);

    /// <summary>
    /// Finishes the file, and closes it unless it is to stay open. Throws what that fails with; the file is released all the same. It may
    /// wait.
    /// </summary>
    /// <param name="written">The number of bytes that the system has taken.</param>
    /// <param name="takesName">Whether an unfinished file gets its name. Otherwise it is given up.</param>
    internal void Close(long written, bool takesName)
    {
        try
        {
            if (HasPreallocatedRest(written))
            {
                Trim(EndOf(written));
            }

            if (Opened is { SharesPosition: true, Appends: false, EndOfLastWrite: < 0 } && written > 0)
            {
                Opened.SetPosition(Offset + written);
            }

            if ((takesName || (!_leaveOpen && written > 0)) && Opened.TellCloseError() is { } error)
            {
                throw error;
            }

            if (takesName)
            {
                _unfinished!.Appear();
            }
        }
        finally
        {
            _unfinished?.Dispose();
            Opened.Release(closeHandle: !_leaveOpen);
        }
    }

    /// <summary>
    /// Frees the room that was reserved behind the end, unless others have appended there. The length stays: others may have cut the file.
    /// </summary>
    private void Trim(long end)
    {
        try
        {
            long length = RandomAccess.GetLength(Opened.Handle);
            if (length <= end)
            {
                RandomAccess.SetLength(Opened.Handle, length);
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentOutOfRangeException)
        {
            throw FileErrors.WithPath(e, Opened.Path);
        }
    }

    /// <summary>The final length of the file. A preallocated file was made empty, so the length is 0 if nothing was written.</summary>
    private long EndOf(long written) => written == 0 ? 0 : Offset + written;
}
