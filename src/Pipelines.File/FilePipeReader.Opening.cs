using Microsoft.Win32.SafeHandles;
using Pipelines.File.Follow;
using Pipelines.File.IO;
using Pipelines.File.Reading;

namespace Pipelines.File;

// How a reader comes to its file.
public sealed partial class FilePipeReader
{
    /// <summary>Opens a file for reading and puts a reader on it, which closes it when it is completed.</summary>
    /// <param name="path">The file: absolute, or relative to the current directory. FIFOs, devices and files of /proc work.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty, or <see langword="null"/>.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder on the way to it.</exception>
    /// <exception cref="UnauthorizedAccessException">The caller may not read it, or it is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeReaderOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="IOException">Opening it failed otherwise, for example because another process has it open exclusively.</exception>
    public static FilePipeReader Create(string path, FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        OpenedFile backend = FileOpening.Open(options.Backend, path, FileMode.Open, FileAccess.Read, options.Share, options.FileOptions, preallocationSize: 0);
        return Create(backend, options, leaveOpen: false, isOpenedByPath: true);
    }

    /// <summary>
    /// As <see cref="Create(string, FilePipeReaderOptions?)"/>, without holding up the caller: the file is opened by a thread of the library's own. A FIFO waits for its other side without
    /// a thread.
    /// </summary>
    /// <param name="path">The file: absolute, or relative to the current directory of this moment.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <param name="cancellationToken">Ends the wait at once; a file that is opened all the same is closed again.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <inheritdoc cref="Create(string, FilePipeReaderOptions?)" path="/exception"/>
    public static ValueTask<FilePipeReader> OpenAsync(string path, FilePipeReaderOptions? options = null, CancellationToken cancellationToken = default)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileOpening.ThrowIfNotSupported(options.Backend);
        string fullPath = Path.GetFullPath(path);
        FifoOpening? fifo = FifoOpening.TryFor(fullPath, FileAccess.Read, options.Share, options.FileOptions);
        return PendingOpen<FilePipeReader>.StartAsync(
            fullPath,
            fifo,
            handle => handle is null ? Create(fullPath, options) : Create(FileOpening.OpenFifo(options.Backend, handle, fullPath), options, leaveOpen: false, isOpenedByPath: true),
            static opened => opened.Complete(),
            cancellationToken);
    }

    /// <summary>
    /// Puts a reader on an open file, which it closes when it is completed unless <see cref="FilePipeReaderOptions.LeaveOpen"/> says otherwise. Where this throws,
    /// the file stays open.
    /// </summary>
    /// <param name="handle">The file, open for reading. A file that can seek is read from <see cref="FilePipeReaderOptions.Offset"/>, wherever its own position is.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="handle"/> is invalid, or an option is set that is for paths.</exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory, or is not open for reading.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeReaderOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    public static FilePipeReader Create(SafeFileHandle handle, FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        options.ValidateForHandle();
        return Create(FileOpening.Attach(options.Backend, handle, FileAccess.Read), options, options.LeaveOpen);
    }

    /// <summary>
    /// Puts a reader on the standard input of this process, which may be a file, a pipe, a terminal or a socket. It reads from where the shell, or whoever read before, has left off,
    /// and leaves a file at the first byte that was not consumed, so that <c>(read header; program; cat) &lt; file</c> reads every line once; it never closes it.
    /// </summary>
    /// <remarks>Not the same as <c>FilePipeReader.Create("/dev/stdin")</c>, which opens the file behind it anew, from its beginning, and fails for a socket.</remarks>
    /// <param name="options">How to read; <see langword="null"/> for the defaults. What is for a path, and <see cref="FilePipeReaderOptions.Offset"/>, cannot be set.</param>
    /// <exception cref="ArgumentException">An option is set that the shell has decided.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory, or is not open for reading.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="IOException">There is no standard input.</exception>
    public static FilePipeReader OpenStandardInput(FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        options.ValidateForHandle();
        return options.Offset != 0
            ? throw new ArgumentException("Where standard input is read from is for whoever started this process: Offset cannot be set.", nameof(options))
            : Create(FileOpening.OpenStandard(options.Backend, isOutput: false), options, leaveOpen: true);
    }

    internal static FilePipeReader Create(OpenedFile backend, FilePipeReaderOptions options, bool leaveOpen, bool isOpenedByPath = false)
    {
        backend.RequireOffset(options.Offset, nameof(FilePipeReaderOptions), closeHandle: isOpenedByPath);
        if (options.Caching == FileCaching.DropBehind)
        {
            backend.DropBehind(isWriter: false);
        }

        if (options.Follow)
        {
            backend = FollowingFile.Of(backend, isOpenedByPath ? backend.GivenPath : null, options.FollowInterval);
        }

        if (backend.SharesPosition)
        {
            options = options.With(backend.GetPosition(), options.Length);
        }

        return new FilePipeReader(new ReadBuffer(options, backend), leaveOpen);
    }
}
