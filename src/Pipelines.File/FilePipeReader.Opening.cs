using Pipelines.File.Growing;
using Pipelines.File.IO;
using Pipelines.File.Reading;

namespace Pipelines.File;

// Opens readers: by path, by handle, and for standard input.
public sealed partial class FilePipeReader
{
    /// <summary>Opens a file and returns a reader for it. The reader closes the file when it is completed.</summary>
    /// <param name="path">
    /// The path of the file, absolute or relative to the current directory. FIFOs, devices and files of /proc work, too.
    /// </param>
    /// <param name="options">How to read; <see langword="null"/> means the defaults.</param>
    /// <exception cref="ArgumentException">
    /// <paramref name="path"/> is empty or <see langword="null"/>, or two options contradict each other.
    /// </exception>
    /// <exception cref="ArgumentOutOfRangeException">Two options do not fit together.</exception>
    /// <exception cref="FileNotFoundException">The file does not exist.</exception>
    /// <exception cref="DirectoryNotFoundException">A folder of the path does not exist.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not read the file, or the path is that of a folder.</exception>
    /// <exception cref="NotSupportedException">
    /// <see cref="FilePipeReaderOptions.Offset"/> is not 0 and the file cannot seek.
    /// </exception>
    /// <exception cref="PlatformNotSupportedException">
    /// This system does not have the <see cref="FilePipeReaderOptions.Backend"/> that the options name.
    /// </exception>
    /// <exception cref="IOException">
    /// The file cannot be opened for another reason, for example because another process has opened it exclusively.
    /// </exception>
    public static FilePipeReader Create(string path, FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        Option.Require(!options.WaitForFile, "Create does not wait for a file: call OpenAsync.", nameof(options.WaitForFile));
        return Create(FileOpening.Open(FileOf(path, options)), options, leaveOpen: false, isOpenedByPath: true);
    }

    /// <summary>
    /// Opens a file without blocking the caller, and returns a reader for it. A thread of the library opens the file; a FIFO waits for its
    /// other side without a thread.
    /// </summary>
    /// <param name="path">The path of the file, absolute or relative to the current directory at the time of the call.</param>
    /// <param name="options">How to read; <see langword="null"/> means the defaults.</param>
    /// <param name="cancellationToken">Ends the wait at once. If the system opens the file after that, it is closed again.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <inheritdoc cref="Create(string, FilePipeReaderOptions?)" path="/exception"/>
    public static ValueTask<FilePipeReader> OpenAsync(string path, FilePipeReaderOptions? options = null,
        CancellationToken cancellationToken = default)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileOpening.ThrowIfNotSupported(options.Backend);
        FileToOpen file = FileOf(path, options).WithFullPath();
        return AsyncOpening.OpenAsync(
            new FifoOpening(file),
            fifo => Create(fifo ?? FileOpening.Open(file), options, leaveOpen: false, isOpenedByPath: true),
            static opened => opened.Complete(),
            cancellationToken,
            options.Missing(file.Path));
    }

    /// <summary>
    /// Returns a reader for an open file. The reader closes the handle when it is completed, unless
    /// <see cref="FilePipeReaderOptions.LeaveOpen"/> is set. If this method throws, the handle stays open.
    /// </summary>
    /// <param name="handle">
    /// A handle that is open for reading. The reader ignores the position of a file that can seek, and begins at
    /// <see cref="FilePipeReaderOptions.Offset"/>.
    /// </param>
    /// <param name="options">How to read; <see langword="null"/> means the defaults.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">
    /// <paramref name="handle"/> is invalid, an option is set that needs a path, or two options contradict each other.
    /// </exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">Two options do not fit together.</exception>
    /// <exception cref="UnauthorizedAccessException">The handle is that of a folder, or is not open for reading.</exception>
    /// <exception cref="NotSupportedException">
    /// <see cref="FilePipeReaderOptions.Offset"/> is not 0 and the file cannot seek, or the handle is open for direct I/O (O_DIRECT,
    /// FILE_FLAG_NO_BUFFERING).
    /// </exception>
    /// <exception cref="PlatformNotSupportedException">
    /// This system does not have the <see cref="FilePipeReaderOptions.Backend"/> that the options name.
    /// </exception>
    public static FilePipeReader Create(SafeFileHandle handle, FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        options.ValidateForHandle();
        return Create(FileOpening.Attach(options.Backend, handle, FileAccess.Read), options, options.LeaveOpen);
    }

    /// <summary>
    /// Returns a reader for the standard input of this process, which may be a file, a pipe, a terminal or a socket. The reader never
    /// closes it.
    /// </summary>
    /// <remarks>
    /// <para>It begins at the position of the open file, where the shell or an earlier program has stopped. When the reader is completed,
    /// it sets the position of a file to the first byte that was not consumed. So <c>(read header; program; cat) &lt; file</c> reads every
    /// line once.</para>
    /// <para><c>FilePipeReader.Create("/dev/stdin")</c> is different: it opens the underlying file again, reads it from its beginning, and
    /// fails for a socket.</para>
    /// </remarks>
    /// <param name="options">
    /// How to read; <see langword="null"/> means the defaults. <see cref="FilePipeReaderOptions.Offset"/> and options that need a path
    /// cannot be set.
    /// </param>
    /// <exception cref="ArgumentException"><see cref="FilePipeReaderOptions.Offset"/> or an option that needs a path is set.</exception>
    /// <exception cref="ArgumentOutOfRangeException">Two options do not fit together.</exception>
    /// <exception cref="UnauthorizedAccessException">Standard input is a folder, or is not open for reading.</exception>
    /// <exception cref="PlatformNotSupportedException">
    /// This system does not have the <see cref="FilePipeReaderOptions.Backend"/> that the options name.
    /// </exception>
    /// <exception cref="IOException">This process has no standard input.</exception>
    public static FilePipeReader OpenStandardInput(FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        options.ValidateForHandle();
        return options.Offset != 0
            ? throw new ArgumentException("Offset cannot be set for standard input: it is read from where the shell, "
                + "or whoever read before, has stopped.", nameof(options))
            : Create(FileOpening.OpenStandard(options.Backend, isOutput: false), options, leaveOpen: true);
    }

    private static FileToOpen FileOf(string path, FilePipeReaderOptions options)
        => new(path, FileMode.Open, FileAccess.Read, options.Share, options.FileOptions) { Backend = options.Backend };

    internal static FilePipeReader Create(OpenedFile backend, FilePipeReaderOptions options, bool leaveOpen, bool isOpenedByPath = false)
    {
        backend.RequireOffset(options.Offset, nameof(FilePipeReaderOptions), closeHandle: isOpenedByPath);
        if (options.Caching == FileCaching.DropBehind)
        {
            backend.DropBehind(isWriter: false);
        }

        if (options.Follow)
        {
            backend = FollowedFile.Of(
                backend, isOpenedByPath ? backend.GivenPath : null, options.FollowInterval, closeHandle: isOpenedByPath);
        }

        if (backend.SharesPosition)
        {
            options = options.With(backend.GetPosition(), options.Length);
        }

        return new FilePipeReader(new ReadBuffer(options, backend), leaveOpen);
    }
}
