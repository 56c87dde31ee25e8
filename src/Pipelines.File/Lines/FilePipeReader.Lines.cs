using Pipelines.File.IO;
using Pipelines.File.Lines;
using Pipelines.File.Threading;

namespace Pipelines.File;

// Readers of a part of a file. The part begins at the beginning of a line.
public sealed partial class FilePipeReader
{
    /// <summary>
    /// Opens a file at the beginning of its last lines, as <c>tail -n</c> does. With <see cref="FilePipeReaderOptions.Follow"/> the reader
    /// also returns what is appended later.
    /// </summary>
    /// <remarks>The lines are searched from the end of the file, so the rest of it is not read.</remarks>
    /// <param name="path">The path of the file, absolute or relative to the current directory at the time of the call.</param>
    /// <param name="count">
    /// The number of lines. A file with fewer lines is read whole; 0 reads none of them. The last line may lack its line end.
    /// </param>
    /// <param name="options">
    /// How to read; <see langword="null"/> means the defaults. <see cref="FilePipeReaderOptions.Offset"/> cannot be set.
    /// </param>
    /// <param name="cancellationToken">Ends the wait at once. If the system opens the file after that, it is closed again.</param>
    /// <exception cref="ArgumentException">
    /// <paramref name="path"/> is empty or <see langword="null"/>, or <see cref="FilePipeReaderOptions.Offset"/> is set.
    /// </exception>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="count"/> is negative, or two options do not fit together.</exception>
    /// <exception cref="NotSupportedException">The file cannot seek, or has no length: a pipe, a device, a file of /proc.</exception>
    /// <exception cref="FileNotFoundException">The file does not exist.</exception>
    /// <exception cref="DirectoryNotFoundException">A folder of the path does not exist.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not read the file, or the path is that of a folder.</exception>
    /// <exception cref="PlatformNotSupportedException">
    /// This system does not have the <see cref="FilePipeReaderOptions.Backend"/> that the options name.
    /// </exception>
    /// <exception cref="IOException">Opening the file, or reading its end, failed for another reason.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public static ValueTask<FilePipeReader> OpenLastLinesAsync(string path, long count, FilePipeReaderOptions? options = null,
        CancellationToken cancellationToken = default)
    {
        string fullPath = Validate(path, ref options);
        ArgumentOutOfRangeException.ThrowIfNegative(count);
        return AsyncOpening.OpenAsync(fifo: null, _ => OpenLastLines(fullPath, count, options),
            static opened => opened.Complete(), cancellationToken, options.Missing(fullPath));
    }

    /// <summary>
    /// Reads a file on several processors: divides it at line ends, and runs <paramref name="body"/> for all parts at once on the thread
    /// pool. Each part has a reader of its own, which is completed when its body has ended.
    /// </summary>
    /// <remarks>
    /// The file is opened once. The task completes when all bodies have ended. The first error cancels the token of the other bodies, and
    /// is thrown when they have ended. Bytes that are appended in the meantime are not read. <b>Every <paramref name="separator"/> must be
    /// the end of a record</b>: a file is divided behind any byte of that value, also within a quoted field of CSV or a binary record.
    /// </remarks>
    /// <param name="path">The path of the file, absolute or relative to the current directory at the time of the call.</param>
    /// <param name="body">What to do with one part, for example a loop over <c>reader.ReadLineBatchesAsync()</c>.</param>
    /// <param name="maxDegreeOfParallelism">
    /// The maximum number of parts, all of which are read at once; <see cref="Environment.ProcessorCount"/> for work that waits for
    /// nothing. There are fewer if lines are longer than a part, and none for an empty file.
    /// </param>
    /// <param name="options">
    /// How to read; <see langword="null"/> means the defaults. <see cref="FilePipeReaderOptions.Offset"/>,
    /// <see cref="FilePipeReaderOptions.Length"/>, <see cref="FilePipeReaderOptions.Follow"/>,
    /// <see cref="FilePipeReaderOptions.LeaveOpen"/> and <see cref="FilePipeBackend.Overlapped"/> cannot be set.
    /// </param>
    /// <param name="separator">The byte that ends a line; LF by default, which also ends lines that end with CR LF.</param>
    /// <param name="cancellationToken">Cancels the token that the bodies get.</param>
    /// <exception cref="ArgumentNullException"><paramref name="body"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">
    /// <paramref name="path"/> is empty or <see langword="null"/>, or an option is set that cannot be set.
    /// </exception>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="maxDegreeOfParallelism"/> is less than 1, or two options do not fit together.
    /// </exception>
    /// <exception cref="NotSupportedException">The file cannot seek, or has no length: a pipe, a device, a file of /proc.</exception>
    /// <exception cref="IOException">
    /// Opening or reading the file failed, or the file became shorter, so that not everything was read.
    /// </exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <inheritdoc cref="OpenLastLinesAsync" path="/exception[@cref='T:System.IO.FileNotFoundException']"/>
    public static Task ForEachPartitionAsync(
        string path,
        Func<FilePipeReader, CancellationToken, Task> body,
        int maxDegreeOfParallelism,
        FilePipeReaderOptions? options = null,
        byte separator = (byte)'\n',
        CancellationToken cancellationToken = default)
    {
        string fullPath = Validate(path, ref options);
        ArgumentNullException.ThrowIfNull(body);
        ArgumentOutOfRangeException.ThrowIfLessThan(maxDegreeOfParallelism, 1);
        return options.Length is not null || options.Follow || options.LeaveOpen || options.Backend == FilePipeBackend.Overlapped
            ? throw new ArgumentException(
                "Length, Follow, LeaveOpen and FilePipeBackend.Overlapped cannot be set for a file that is read in parts.", nameof(options))
            : ForEachAsync();

        async Task ForEachAsync()
        {
            // Windows performs one call at a time on a handle that is not open for overlapped I/O.
            FileToOpen wanted = FileOf(fullPath, options);
            wanted = OperatingSystem.IsWindows() ? wanted with { Options = wanted.Options | FileOptions.Asynchronous } : wanted;
            OpenedFile file = await AsyncOpening.OpenAsync(
                fifo: null, _ => LineSearch.Open(wanted), static opened => opened.Release(closeHandle: true), cancellationToken)
                .ConfigureAwait(false);
            try
            {
                FileRange[] ranges = await WaitingThreads.Reads.RunAsync(
                    () => FilePartitions.AtLineEnds(file, maxDegreeOfParallelism, separator)).ConfigureAwait(false);

                // ParallelOptions does not get the token: a late cancellation would hide the first error, or that everything was read.
                ParallelOptions atOnce = new() { MaxDegreeOfParallelism = maxDegreeOfParallelism };
                await Parallel.ForEachAsync(ranges, atOnce, RunAsync).ConfigureAwait(false);
                if (ranges.Length > 0 && RandomAccess.GetLength(file.Handle) is long length && length < ranges[^1].EndOffset)
                {
                    throw CutWhileRead(length, ranges[^1].EndOffset, fullPath);
                }
            }
            finally
            {
                file.Release(closeHandle: true);
            }

            async ValueTask RunAsync(FileRange range, CancellationToken failed)
            {
                using CancellationTokenSource stop = CancellationTokenSource.CreateLinkedTokenSource(failed, cancellationToken);
                stop.Token.ThrowIfCancellationRequested();
                FilePipeReader reader = Create(FileOpening.Choose(options.Backend, file.Handle, fullPath, properties: file.Properties),
                    options.With(range.Offset, range.Length), leaveOpen: true);
                await using (reader.ConfigureAwait(false))
                {
                    await body(reader, stop.Token).ConfigureAwait(false);
                }

                if (reader._buffer.HasEndedEarly)
                {
                    throw CutWhileRead(RandomAccess.GetLength(file.Handle), range.EndOffset, fullPath);
                }
            }
        }
    }

    private static IOException CutWhileRead(long length, long end, string fullPath)
        => new($"The file was cut while it was read: it has {length} bytes now, and was to be read up to {end}: '{fullPath}'");

    private static string Validate(string path, [NotNull] ref FilePipeReaderOptions? options)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        FileOpening.ThrowIfNotSupported(options.Backend);
        return options.Offset == 0 ? Path.GetFullPath(path)
            : throw new ArgumentException("Offset cannot be set: the lines decide where reading begins.", nameof(options));
    }

    private static FilePipeReader OpenLastLines(string fullPath, long count, FilePipeReaderOptions options)
    {
        OpenedFile file = LineSearch.Open(FileOf(fullPath, options));
        try
        {
            long offset = LineSearch.FindLastLines(file, file.Properties.Length, count);
            return Create(file, options.With(offset, options.Length), leaveOpen: false, isOpenedByPath: true);
        }
        catch
        {
            file.Release(closeHandle: true);
            throw;
        }
    }
}
