using Pipelines.File.IO;

namespace Pipelines.File.Lines;

/// <summary>An open file that several readers read at once, a part each.</summary>
internal sealed class PartitionedFile(string path, SafeFileHandle handle, FileRange[] ranges) : IDisposable
{
    /// <summary>Opens the file and divides it. Waits for the device.</summary>
    internal static PartitionedFile Open(string fullPath, int count, FilePipeReaderOptions options, byte separator)
    {
        // Windows performs one call at a time on a handle that is not open for overlapped I/O.
        FileOptions fileOptions = OperatingSystem.IsWindows() ? options.FileOptions | FileOptions.Asynchronous : options.FileOptions;
        SafeFileHandle handle = LineSearch.Open(fullPath, options.Share, fileOptions);
        try
        {
            return new PartitionedFile(fullPath, handle, FilePartitions.AtLineEnds(handle, count, separator, fullPath));
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Runs the body for all parts at once, and waits for all of them. The first error cancels the other bodies, and is thrown.
    /// </summary>
    internal async Task ForEachAsync(FilePipeReaderOptions options, Func<FilePipeReader, CancellationToken, Task> body,
        CancellationToken cancellationToken)
    {
        // ParallelOptions does not get the token: a late cancellation would hide the first error, or that everything was read.
        ParallelOptions atOnce = new() { MaxDegreeOfParallelism = Math.Max(1, ranges.Length) };
        await Parallel.ForEachAsync(ranges, atOnce, RunAsync).ConfigureAwait(false);
        if (ranges.Length > 0 && RandomAccess.GetLength(handle) is long length && length < ranges[^1].EndOffset)
        {
            throw new IOException($"The file was cut to {length} bytes while it was read; it had {ranges[^1].EndOffset}: '{path}'");
        }

        async ValueTask RunAsync(FileRange range, CancellationToken failed)
        {
            using CancellationTokenSource stop = CancellationTokenSource.CreateLinkedTokenSource(failed, cancellationToken);
            stop.Token.ThrowIfCancellationRequested();
            FilePipeReader reader = FilePipeReader.Create(FileOpening.Choose(options.Backend, handle, path),
                options.With(range.Offset, range.Length), leaveOpen: true);
            await using (reader.ConfigureAwait(false))
            {
                await body(reader, stop.Token).ConfigureAwait(false);
            }
        }
    }

    public void Dispose() => handle.Dispose();
}
