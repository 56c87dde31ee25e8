using Microsoft.Win32.SafeHandles;
using Pipelines.File.Lines;

namespace Pipelines.File;

/// <summary>Divides a file, so that several threads, each with a reader of its own, can read it at once.</summary>
public static class FilePartitions
{
    /// <summary>
    /// Divides a file into parts of about the same length that begin at the beginning of a line. They are in order, none is empty, and together they are exactly the file as it is now.
    /// A line that is longer than a part belongs to the part that it begins in.
    /// </summary>
    /// <param name="path">The file.</param>
    /// <param name="count">How many parts at most: there are fewer where lines are long, and none for an empty file.</param>
    /// <param name="separator">The byte that ends a line; LF by default, which ends also those that end with CR LF.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty, or <see langword="null"/>.</exception>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="count"/> is less than 1.</exception>
    /// <exception cref="NotSupportedException">The file cannot seek, or does not tell its length: a pipe, a device, a file of /proc.</exception>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder on the way to it.</exception>
    /// <exception cref="UnauthorizedAccessException">The caller may not read it, or it is a directory.</exception>
    /// <exception cref="IOException">Reading it failed.</exception>
    public static FileRange[] AtLineEnds(string path, int count, byte separator = (byte)'\n')
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        ArgumentOutOfRangeException.ThrowIfLessThan(count, 1);
        using SafeFileHandle handle = LineSearch.Open(path, FileShare.ReadWrite | FileShare.Delete, FileOptions.None);
        return AtLineEnds(handle, count, separator, path);
    }

    /// <inheritdoc cref="AtLineEnds(string, int, byte)" path="/summary"/>
    /// <param name="handle">The file, open for reading. It stays open, and where it is.</param>
    /// <param name="count">How many parts at most: there are fewer where lines are long, and none for an empty file.</param>
    /// <param name="separator">The byte that ends a line; LF by default, which ends also those that end with CR LF.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="count"/> is less than 1.</exception>
    /// <exception cref="ArgumentException"><paramref name="handle"/> is invalid.</exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="NotSupportedException">The file cannot seek, or does not tell its length: a pipe, a device, a file of /proc.</exception>
    /// <exception cref="IOException">Reading it failed.</exception>
    public static FileRange[] AtLineEnds(SafeFileHandle handle, int count, byte separator = (byte)'\n')
    {
        ArgumentNullException.ThrowIfNull(handle);
        ArgumentOutOfRangeException.ThrowIfLessThan(count, 1);
        ObjectDisposedException.ThrowIf(handle.IsClosed, handle);
        return handle.IsInvalid ? throw new ArgumentException("The handle is invalid.", nameof(handle)) : AtLineEnds(handle, count, separator, path: null);
    }

    internal static FileRange[] AtLineEnds(SafeFileHandle handle, int count, byte separator, string? path)
    {
        long length = LineSearch.LengthOf(handle, path);
        List<FileRange> ranges = [];
        long offset = 0;
        for (int i = 1; i <= count && offset < length; i++)
        {
            // A multiplication that cannot overflow.
            long target = (length / count * i) + (length % count * i / count);
            if (target > offset)
            {
                // From the byte before, as a line may end exactly there.
                long end = i == count ? length : LineSearch.FindEnd(handle, target - 1, length, separator);
                ranges.Add(new FileRange(offset, end - offset));
                offset = end;
            }
        }

        return [.. ranges];
    }
}
