using Pipelines.File.IO;

namespace Pipelines.File.Lines;

/// <summary>Finds line ends in bytes, and at places in a file that somebody jumps to, which waits for the device.</summary>
internal static class LineSearch
{
    /// <summary>Bytes that are read at once.</summary>
    private const int BlockSize = 64 * 1024;

    /// <summary>Opens a file to search it.</summary>
    /// <exception cref="NotSupportedException">It is a FIFO, whose open would wait for the other side.</exception>
    internal static SafeFileHandle Open(string path, FileShare share, FileOptions options)
    {
        string fullPath = Path.GetFullPath(path);
        return OperatingSystem.IsLinux() && FifoOpening.IsFifo(fullPath)
            ? throw CannotSeek(fullPath)
            : System.IO.File.OpenHandle(fullPath, FileMode.Open, FileAccess.Read, share, options);
    }

    /// <summary>How long the file is, bytes.</summary>
    /// <exception cref="NotSupportedException">It cannot seek, or does not tell.</exception>
    internal static long LengthOf(SafeFileHandle handle, string? path)
        => FileProperties.Of(handle, path) is { CanSeek: true, KnownLength: { } length } ? length
            : throw CannotSeek(path ?? FileProperties.PathOf(handle));

    /// <summary>
    /// Cuts bytes at the first line feed behind those that are known to hold none. <see langword="false"/>: there is none.
    /// </summary>
    /// <param name="bytes">The bytes; then what stands behind the line feed.</param>
    /// <param name="searched">How many at the beginning hold no line feed.</param>
    /// <param name="line">What stands in front of the line end, LF or CR LF; all bytes where there is none.</param>
    internal static bool TryCut(ref ReadOnlySequence<byte> bytes, long searched, out ReadOnlySequence<byte> line)
    {
        line = bytes;
        if (bytes.Slice(searched).PositionOf((byte)'\n') is not { } lineFeed)
        {
            return false;
        }

        line = bytes.Slice(0, lineFeed);
        bytes = bytes.Slice(bytes.GetPosition(1, lineFeed));
        line = !line.IsEmpty && line.Slice(line.Length - 1).FirstSpan[0] == '\r' ? line.Slice(0, line.Length - 1) : line;
        return true;
    }

    /// <summary>
    /// The offset behind the first separator from <paramref name="offset"/> on; <paramref name="length"/> if there is none before it.
    /// </summary>
    internal static long FindEnd(SafeFileHandle handle, long offset, long length, byte separator)
    {
        byte[] block = ArrayPool<byte>.Shared.Rent(BlockSize);
        int index = -1;
        while (offset < length && index < 0)
        {
            int read = RandomAccess.Read(handle, block.AsSpan(0, (int)Math.Min(BlockSize, length - offset)), offset);
            index = block.AsSpan(0, read).IndexOf(separator);

            // Nothing: the file has become shorter.
            offset = index >= 0 ? offset + index + 1 : read == 0 ? length : offset + read;
        }

        ArrayPool<byte>.Shared.Return(block);
        return offset;
    }

    /// <summary>Where the last lines begin. A line feed at the very end ends the last one.</summary>
    internal static long FindLastLines(SafeFileHandle handle, long length, long count)
        => count == 0 || length == 0 ? length : FindLineFeedFromEnd(handle, length - 1, count);

    /// <summary>
    /// Where the last lines with their line ends begin: what stands behind the last line end is the beginning of a line, and not counted.
    /// </summary>
    internal static long FindLastWholeLines(SafeFileHandle handle, long length, long count)
        => FindLineFeedFromEnd(handle, length, unchecked(count + 1));

    /// <summary>The offset behind the line feed of that number, counted from an end; 0 if there are not so many.</summary>
    private static long FindLineFeedFromEnd(SafeFileHandle handle, long end, long count)
    {
        byte[] block = ArrayPool<byte>.Shared.Rent(BlockSize);
        while (end > 0 && count != 0)
        {
            long start = Math.Max(0, end - BlockSize);
            int read = 0;
            for (int next = 1; next > 0 && read < end - start; read += next)
            {
                // A file system may answer with less than there is.
                next = RandomAccess.Read(handle, block.AsSpan(read, (int)(end - start) - read), start + read);
            }

            Span<byte> rest = block.AsSpan(0, read);
            end = start;
            while (count != 0 && rest.LastIndexOf((byte)'\n') is int index and >= 0)
            {
                count--;
                end = count == 0 ? start + index + 1 : start;
                rest = rest[..index];
            }
        }

        ArrayPool<byte>.Shared.Return(block);
        return end;
    }

    private static NotSupportedException CannotSeek(string? path)
        => new("Lines in the middle of a file can be found only where it can seek and tells its length"
            + (path is null ? "." : $": '{path}'"));
}
