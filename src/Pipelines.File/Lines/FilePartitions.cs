using Pipelines.File.IO;
using Pipelines.File.Lines;

namespace Pipelines.File;

/// <summary>Divides a file into parts, so that several threads can read it at once, each with a reader of its own.</summary>
public static class FilePartitions
{
    /// <summary>
    /// Divides a file into parts of about the same length, each of which begins at the beginning of a line. The parts are in order, none is
    /// empty, and together they are the whole file as it is now. A line that is longer than a part belongs to the part in which it begins.
    /// </summary>
    /// <remarks>
    /// <b>Every <paramref name="separator"/> must be the end of a line or record</b>: a file is divided behind any byte of that value, also
    /// within a quoted field of CSV or a binary record.
    /// </remarks>
    /// <param name="path">The path of the file.</param>
    /// <param name="count">The maximum number of parts. There are fewer if lines are long, and none for an empty file.</param>
    /// <param name="separator">The byte that ends a line; LF by default, which also ends lines that end with CR LF.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty, or <see langword="null"/>.</exception>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="count"/> is less than 1.</exception>
    /// <exception cref="NotSupportedException">The file cannot seek, or has no length: a pipe, a device, a file of /proc.</exception>
    /// <exception cref="FileNotFoundException">The file does not exist.</exception>
    /// <exception cref="DirectoryNotFoundException">A folder of the path does not exist.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not read the file, or the path is that of a folder.</exception>
    /// <exception cref="IOException">Reading the file failed.</exception>
    public static FileRange[] AtLineEnds(string path, int count, byte separator = (byte)'\n')
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        ArgumentOutOfRangeException.ThrowIfLessThan(count, 1);
        OpenedFile file = LineSearch.Open(
            new FileToOpen(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete).WithFullPath());
        try
        {
            return AtLineEnds(file, count, separator);
        }
        finally
        {
            file.Release(closeHandle: true);
        }
    }

    internal static FileRange[] AtLineEnds(OpenedFile file, int count, byte separator)
    {
        long length = file.Properties.Length;
        List<FileRange> ranges = [];
        count = (int)Math.Min(count, length);
        long offset = 0;
        for (int i = 1; i <= count && offset < length; i++)
        {
            // length * i / count, in a form that cannot overflow.
            long target = (length / count * i) + (length % count * i / count);
            if (target > offset)
            {
                // Search from the byte before: a line may end exactly at the target.
                long end = i == count ? length : LineSearch.FindEnd(file, target - 1, length, separator);
                ranges.Add(new FileRange(offset, end - offset));
                offset = end;
            }
        }

        return [.. ranges];
    }
}
