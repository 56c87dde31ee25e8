using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;

namespace Pipelines.File;

/// <summary>
/// The file of one writer: how it is opened, where its bytes go, and how it is finished. The <see cref="Drain"/> guards it: its steps run one at a time, and
/// <see cref="Close"/> comes once, behind the last of them.
/// </summary>
internal sealed class WriterFile
{
    private readonly bool _leaveOpen;

    // With Replace: what gives the file its name in the end.
    private readonly UnfinishedFile? _unfinished;

    // What was reserved and does not go by itself where it is not written, bytes. On Windows room is reserved behind the end of the file, and goes when it is closed.
    private long _preallocated;

    private WriterFile(FileBackend backend, FilePipeWriterOptions options, long offset, bool leaveOpen, bool isOpenedByPath, UnfinishedFile? unfinished = null)
    {
        Backend = backend;
        Offset = offset;
        IsChanged = isOpenedByPath && options.Mode != FileMode.Open;
        _leaveOpen = leaveOpen;
        _unfinished = unfinished;
        _preallocated = isOpenedByPath && backend.CanSeek && !OperatingSystem.IsWindows() ? options.PreallocationSize : 0;
    }

    internal FileBackend Backend { get; }

    /// <summary>The file offset of the writer's first byte; moves where others append to the file as well, so that the last byte written is where the system has put it.</summary>
    internal long Offset { get; private set; }

    /// <summary>Whether opening has made the file or emptied it, as far as the mode tells.</summary>
    internal bool IsChanged { get; }

    /// <summary>Whether it gets its name in the end.</summary>
    internal bool IsUnfinished => _unfinished is not null;

    /// <inheritdoc cref="FilePipeWriter.Create(string, FilePipeWriterOptions?)"/>
    internal static WriterFile Open(string path, FilePipeWriterOptions options, object? calls = null)
    {
        options.Validate();
        options.ValidateForPath();
        if (options.Replace)
        {
            UnfinishedFile unfinished = UnfinishedFile.Open(path, options, calls);
            return new WriterFile(unfinished.Backend, options, offset: 0, leaveOpen: false, isOpenedByPath: true, unfinished);
        }

        FileBackend backend = FileBackends.Open(options.Backend, path, options.Mode, FileAccess.Write, options.Share, options.FileOptions, options.PreallocationSize);
        return Of(backend, options, leaveOpen: false, isOpenedByPath: true);
    }

    /// <inheritdoc cref="FilePipeWriter.Create(SafeFileHandle, FilePipeWriterOptions?)"/>
    internal static WriterFile Attach(SafeFileHandle handle, FilePipeWriterOptions options)
    {
        options.Validate();
        options.ValidateForHandle();
        if (options.Replace)
        {
            throw new ArgumentException($"{nameof(FilePipeWriterOptions.Replace)} is for a file that is given by path: an open one has its name.", nameof(options));
        }

        FileBackend backend = FileBackends.Attach(options.Backend, handle);
        return backend.Appends && options.Offset is not null
            ? throw new ArgumentException("The handle is open for appending, so its bytes go to the end of the file: Offset cannot be honoured.", nameof(options))
            : Of(backend, options, options.LeaveOpen, isOpenedByPath: false);
    }

    /// <inheritdoc cref="FilePipeWriter.OpenStandardOutput"/>
    internal static WriterFile OpenStandardOutput(FilePipeWriterOptions options)
    {
        options.Validate();
        options.ValidateForHandle();
        if (options.Mode != FileMode.Create || options.Offset is not null)
        {
            throw new ArgumentException("Where standard output is written to is for whoever started this process: neither Mode nor Offset can be set.", nameof(options));
        }

        return Of(FileBackends.OpenStandard(options.Backend, isOutput: true), options, leaveOpen: true, isOpenedByPath: false);
    }

    /// <summary>An open file, which begins at its end where the writer appends, and else where the option says.</summary>
    internal static WriterFile Of(FileBackend backend, FilePipeWriterOptions options, bool leaveOpen, bool isOpenedByPath)
    {
        backend.RequireOffset(options.Offset ?? 0, nameof(FilePipeWriterOptions), closeHandle: isOpenedByPath);
        long start = options.Mode == FileMode.Append || backend.Appends ? backend.Properties.Length : backend.SharesPosition ? backend.GetPosition() : 0;
        return new WriterFile(backend, options, options.Offset ?? start, leaveOpen, isOpenedByPath);
    }

    /// <summary>The system has taken all bytes up to that count: where it has put them, if it tells.</summary>
    internal void OnWritten(long written)
    {
        if (Backend.EndOfLastWrite is long end and >= 0)
        {
            Offset = end - written;
        }
    }

    /// <summary>Whether the file is longer than what was written.</summary>
    internal bool HasRoomBehind(long written) => _preallocated > EndOf(written);

    /// <summary>Gives back what was preallocated and not written. On a thread that may wait.</summary>
    internal void Trim(long written)
    {
        RandomAccess.SetLength(Backend.Handle, EndOf(written));
        _preallocated = 0;
    }

    /// <summary>Gives the file its name. On a thread that may wait.</summary>
    internal void TakeName() => _unfinished!.Appear();

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
            error = FileErrors.WithPath(e, Backend.Path);
        }

        if (Backend is { SharesPosition: true, Appends: false, EndOfLastWrite: < 0 } && written > 0)
        {
            Backend.SetPosition(Offset + written);
        }

        _unfinished?.Dispose();
        Backend.Release(closeHandle: !_leaveOpen);
        return error;
    }

    /// <summary>The file's length when it is completed. It was made empty: with nothing written it is.</summary>
    private long EndOf(long written) => written == 0 ? 0 : Offset + written;
}
