using Pipelines.File.IO;
using Pipelines.File.Lines;

namespace Pipelines.File;

// Readers of a part of a file that begins at the beginning of a line.
public sealed partial class FilePipeReader
{
    /// <summary>
    /// Opens a file at the beginning of its last lines, which are found from its end. The reader gives them, and with <see cref="FilePipeReaderOptions.Follow"/> what is appended later, as
    /// <c>tail -n</c> does.
    /// </summary>
    /// <param name="path">The file: absolute, or relative to the current directory of this moment.</param>
    /// <param name="count">How many lines: all of a file that has fewer; none if it is 0. The last one may lack its line end.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults. <see cref="FilePipeReaderOptions.Offset"/> cannot be set.</param>
    /// <param name="cancellationToken">Ends the wait at once; a file that is opened all the same is closed again.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty or <see langword="null"/>, or <see cref="FilePipeReaderOptions.Offset"/> is set.</exception>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="count"/> is negative, or an option is out of its range.</exception>
    /// <exception cref="NotSupportedException">The file cannot seek, or does not tell its length: a pipe, a device, a file of /proc.</exception>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder on the way to it.</exception>
    /// <exception cref="UnauthorizedAccessException">The caller may not read it, or it is a directory.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="IOException">Opening it failed otherwise, or reading its end.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public static ValueTask<FilePipeReader> OpenLastLinesAsync(string path, long count, FilePipeReaderOptions? options = null, CancellationToken cancellationToken = default)
    {
        string fullPath = Validate(path, ref options);
        ArgumentOutOfRangeException.ThrowIfNegative(count);
        return PendingOpen<FilePipeReader>.StartAsync(fullPath, fifo: null, _ => OpenLastLines(fullPath, count, options), static opened => opened.Complete(), cancellationToken);
    }

    /// <summary>
    /// Reads a file on several processors: divides it at line ends, opens it once, and runs <paramref name="body"/> for all parts at once on the thread pool, each with a reader of its own, which
    /// is completed when the body is over. Completes when all are; the first error cancels the token of the others, and is thrown when they have ended.
    /// </summary>
    /// <param name="path">The file: absolute, or relative to the current directory of this moment.</param>
    /// <param name="body">What is done with a part, for example with the reader's ReadLineBatchesAsync.</param>
    /// <param name="degree">
    /// How many parts, and bodies at once: for work that waits for nothing, <see cref="Environment.ProcessorCount"/>. There are fewer where lines are longer than a part, and none for an empty file.
    /// </param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults. What chooses a part of the file, and <see cref="FilePipeReaderOptions.Follow"/>, cannot be set.</param>
    /// <param name="separator">The byte that ends a line; LF by default, which ends also those that end with CR LF.</param>
    /// <param name="cancellationToken">Cancels the token of the bodies.</param>
    /// <exception cref="ArgumentNullException"><paramref name="body"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty or <see langword="null"/>, or an option is set that cannot be.</exception>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="degree"/> is less than 1, or an option is out of its range.</exception>
    /// <exception cref="NotSupportedException">The file cannot seek, or does not tell its length: a pipe, a device, a file of /proc.</exception>
    /// <exception cref="IOException">Opening or reading it failed, or it has become shorter meanwhile, so that not everything was read. What is appended meanwhile is not read.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <inheritdoc cref="OpenLastLinesAsync" path="/exception[@cref='T:System.IO.FileNotFoundException']"/>
    public static Task ForEachPartitionAsync(
        string path,
        Func<FilePipeReader, CancellationToken, Task> body,
        int degree,
        FilePipeReaderOptions? options = null,
        byte separator = (byte)'\n',
        CancellationToken cancellationToken = default)
    {
        string fullPath = Validate(path, ref options);
        ArgumentNullException.ThrowIfNull(body);
        ArgumentOutOfRangeException.ThrowIfLessThan(degree, 1);
        return options.Length is not null || options.Follow || options.LeaveOpen || options.Backend == FilePipeBackend.Overlapped
            ? throw new ArgumentException("A file that is read in parts has neither a Length, Follow nor LeaveOpen, and its one handle serves no FilePipeBackend.Overlapped.", nameof(options))
            : RunAsync();

        async Task RunAsync()
        {
            using PartitionedFile file = await PendingOpen<PartitionedFile>.StartAsync(
                fullPath, fifo: null, _ => PartitionedFile.Open(fullPath, degree, options, separator), static opened => opened.Dispose(), cancellationToken).ConfigureAwait(false);
            await file.ForEachAsync(options, body, cancellationToken).ConfigureAwait(false);
        }
    }

    private static string Validate(string path, [System.Diagnostics.CodeAnalysis.NotNull] ref FilePipeReaderOptions? options)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        FileOpening.ThrowIfNotSupported(options.Backend);
        return options.Offset == 0 ? Path.GetFullPath(path) : throw new ArgumentException("Where to begin is found: Offset cannot be set.", nameof(options));
    }

    private static FilePipeReader OpenLastLines(string fullPath, long count, FilePipeReaderOptions options)
    {
        while (true)
        {
            FileStatus searched;
            long offset;
            using (Microsoft.Win32.SafeHandles.SafeFileHandle handle = LineSearch.Open(fullPath, FileShare.ReadWrite | FileShare.Delete, FileOptions.None))
            {
                offset = LineSearch.FindLastLines(handle, LineSearch.LengthOf(handle, fullPath), count);
                FileStatus.TryOf(handle, out searched);
            }

            FilePipeReader reader = Create(fullPath, options.With(offset, options.Length));
            if (reader.Identity == searched.Identity)
            {
                return reader;
            }

            // The name means another file by now.
            reader.Complete();
        }
    }
}
