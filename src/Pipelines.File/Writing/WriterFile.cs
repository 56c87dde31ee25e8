using Pipelines.File.IO;
using Pipelines.File.Replace;

namespace Pipelines.File.Writing;

/// <summary>
/// The file of one writer: how it is opened, where its bytes go, and how it is finished. The <see cref="WriteLoop"/> guards it: its steps
/// run one at a time, and
/// <see cref="Close"/> comes once, behind the last of them.
/// </summary>
internal sealed class WriterFile
{
    /// <summary>Bytes up to which a file is written, and closed, in less time than a hop to another thread takes.</summary>
    internal const int ShortFile = 64 * 1024;

    private readonly bool _leaveOpen;
    private readonly bool _isPlain;

    // With Replace: what gives the file its name in the end.
    private readonly ReplacementFile? _unfinished;

    // What was reserved and does not go by itself where it is not written, bytes. On Windows room is reserved behind the end of the file,
    // and goes when it is closed.
    private long _preallocated;

    private WriterFile(OpenedFile file, FilePipeWriterOptions options, long offset, bool leaveOpen, bool isOpenedByPath,
        ReplacementFile? unfinished = null)
    {
        Opened = file;
        Offset = offset;
        IsChanged = isOpenedByPath && (options.Mode != FileMode.Open || options.Truncate);
        _leaveOpen = leaveOpen;
        _isPlain = isOpenedByPath && options is { Replace: false, Caching: FileCaching.Keep, PreallocationSize: 0 }
            && (options.FileOptions & FileOptions.WriteThrough) == 0;
        _unfinished = unfinished;
        _preallocated = isOpenedByPath && file.CanSeek && !OperatingSystem.IsWindows() ? options.PreallocationSize : 0;
    }

    internal OpenedFile Opened { get; }

    /// <summary>
    /// The file offset of the writer's first byte; moves where others append to the file as well, so that the last byte written is where
    /// the system has put it.
    /// </summary>
    internal long Offset { get; private set; }

    /// <summary>Whether opening has made the file or emptied it, as far as the mode tells.</summary>
    internal bool IsChanged { get; }

    /// <summary>Whether it gets its name in the end.</summary>
    internal bool IsUnfinished => _unfinished is not null;

    /// <summary>What opens it before that.</summary>
    internal string UnfinishedPath => _unfinished!.PathForNow;

    /// <inheritdoc cref="FilePipeWriter.Create(string, FilePipeWriterOptions?)"/>
    internal static WriterFile Open(string path, FilePipeWriterOptions options, object? calls = null)
    {
        options.ValidateForPath();
        if (options.Replace)
        {
            ReplacementFile unfinished = ReplacementFile.Open(path, options, calls);
            try
            {
                OpenedFile beside = WithCaching(unfinished.Backend, options, isOwn: true);
                return new WriterFile(beside, options, offset: 0, leaveOpen: false, isOpenedByPath: true, unfinished);
            }
            catch
            {
                unfinished.Dispose();
                unfinished.Backend.Release(closeHandle: true);
                throw;
            }
        }

        FileToOpen file = ToOpen(path, options);
        if (options.Caching == FileCaching.Direct)
        {
            // Before a file is made, or the one that is there is emptied.
            FileOpening.ThrowIfNotDirect(file);
        }

        return Of(FileOpening.Open(file), options, leaveOpen: false, isOpenedByPath: true);
    }

    internal static FileToOpen ToOpen(string path, FilePipeWriterOptions options)
        => new(path, options.Mode, FileAccess.Write, FileOpening.ShareFor(options.Caching, options.Share, FileAccess.Write),
            options.FileOptions)
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

    /// <summary>An open file, which begins at its end where the writer appends, and else where the option says.</summary>
    internal static WriterFile Of(OpenedFile file, FilePipeWriterOptions options, bool leaveOpen, bool isOpenedByPath)
    {
        file.RequireOffset(options.Offset ?? 0, nameof(FilePipeWriterOptions), closeHandle: isOpenedByPath);
        long start = options.Mode == FileMode.Append || file.Appends ? file.Properties.Length : file.SharesPosition ? file.GetPosition()
            : 0;
        OpenedFile opened = file;
        try
        {
            // Cut last: where something else is refused the file is as it was.
            opened = WithCaching(file, options, isOpenedByPath);
            if (file.IsNew && options.FlushGuarantee == FlushGuarantee.Durable)
            {
                // So that what stands in the way is told before anything is written.
                file.OpenFolder();
            }

            if (options.Truncate)
            {
                Cut(file, options.Offset ?? 0);
            }

            return new WriterFile(opened, options, options.Offset ?? start, leaveOpen, isOpenedByPath);
        }
        catch
        {
            opened.Release(closeHandle: isOpenedByPath);
            if (file is { IsNew: true, GivenPath: { } path, Properties.Length: 0 } && options.Caching == FileCaching.Direct)
            {
                System.IO.File.Delete(path);
            }

            throw;
        }
    }

    private static OpenedFile WithCaching(OpenedFile file, FilePipeWriterOptions options, bool isOwn)
        => FileOpening.WithCaching(
            file, options.Caching, isWriter: true, isOwn, options.WritesInFlight,
                mostLength: options.Truncate ? options.Offset ?? 0 : long.MaxValue);

    private static void Cut(OpenedFile file, long length)
    {
        if (!file.CanSeek)
        {
            throw new NotSupportedException($"The file cannot seek, so it cannot be cut: '{file.Path}'");
        }

        try
        {
            if (RandomAccess.GetLength(file.Handle) > length)
            {
                RandomAccess.SetLength(file.Handle, length);
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw FileErrors.WithPath(e, file.Path);
        }
    }

    /// <summary>The system has taken all bytes up to that count: where it has put them, if it tells.</summary>
    internal void OnWritten(long written)
    {
        if (Opened.EndOfLastWrite is long end and >= 0)
        {
            Offset = end - written;
        }
    }

    /// <summary>
    /// Whether writing and closing it takes no longer than copying the bytes into the page cache does. A handle of the caller's may be open
    /// for direct I/O or O_SYNC, and a server may be waited for.
    /// </summary>
    internal bool IsWrittenToMemory() => _isPlain && Opened.Properties.IsRegular && LocalFileSystems.Hold(Opened.Handle);

    /// <summary>
    /// Whether closing it may wait: for a server, or for a device where a long file was emptied first (ext4(5), auto_da_alloc).
    /// </summary>
    internal bool MayWaitToClose(long written)
        => !_leaveOpen && Opened.CanSeek && written > 0 && !((Opened.IsNew || written <= ShortFile) && IsWrittenToMemory());

    /// <summary>Whether the file is longer than what was written.</summary>
    internal bool HasRoomBehind(long written) => _preallocated > EndOf(written);

    /// <summary>Gives back what was preallocated and not written. On a thread that may wait.</summary>
    internal void Trim(long written)
    {
        try
        {
            RandomAccess.SetLength(Opened.Handle, EndOf(written));
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw FileErrors.WithPath(e, Opened.Path);
        }

        _preallocated = 0;
    }

    /// <summary>Gives the file its name. On a thread that may wait.</summary>
    internal void TakeName()
    {
        if (Opened.TellCloseError() is { } error)
        {
            throw error;
        }

        _unfinished!.Appear();
    }

    /// <summary>Finishes the file, and closes it unless it is to stay open. Whatever happens, it is released.</summary>
    /// <param name="written">Bytes that the system has.</param>
    /// <returns>What has failed.</returns>
    internal Exception? Close(long written)
    {
        Exception? error = null;
        try
        {
            if (!IsUnfinished && HasRoomBehind(written))
            {
                Trim(written);
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            error = e;
        }

        if (Opened is { SharesPosition: true, Appends: false, EndOfLastWrite: < 0 } && written > 0)
        {
            Opened.SetPosition(Offset + written);
        }

        _unfinished?.Dispose();
        if (!_leaveOpen && written > 0 && error is null)
        {
            error = Opened.TellCloseError();
        }

        Opened.Release(closeHandle: !_leaveOpen);
        return error;
    }

    /// <summary>The file's length when it is completed. It was made empty: with nothing written it is.</summary>
    private long EndOf(long written) => written == 0 ? 0 : Offset + written;
}
