using Pipelines.File.IO;

namespace Pipelines.File.Lines;

/// <summary>Finds line ends in bytes, and from any offset of a file. The methods that read a file wait for the device.</summary>
internal static class LineSearch
{
    /// <summary>The number of bytes that one call reads.</summary>
    private const int BlockSize = 64 * 1024;

    /// <summary>Opens a file to search it.</summary>
    /// <exception cref="NotSupportedException">
    /// It cannot seek, or has no known length. A FIFO is not opened: that would wait for the other side.
    /// </exception>
    internal static OpenedFile Open(in FileToOpen file)
    {
        if (FileStatus.TypeOf(file.Path) == Libc.S_IFIFO)
        {
            throw CannotSeek(file.Path);
        }

        OpenedFile opened = FileOpening.Open(file);
        if (opened.Properties is { CanSeek: true, KnownLength: not null })
        {
            return opened;
        }

        opened.Release(closeHandle: true);
        throw CannotSeek(file.Path);
    }

    /// <summary>
    /// Returns the offset after the first separator at or after <paramref name="offset"/>; <paramref name="length"/> if there is none
    /// before that.
    /// </summary>
    internal static long FindEnd(OpenedFile file, long offset, long length, byte separator)
    {
        byte[] block = ArrayPool<byte>.Shared.Rent(BlockSize);
        int index = -1;
        while (offset < length && index < 0)
        {
            int read = file.ReadHere(block.AsSpan(0, (int)Math.Min(BlockSize, length - offset)), offset);
            index = block.AsSpan(0, read).IndexOf(separator);

            // 0 bytes: the file has become shorter.
            offset = index >= 0 ? offset + index + 1 : read == 0 ? length : offset + read;
        }

        ArrayPool<byte>.Shared.Return(block);
        return offset;
    }

    /// <summary>Returns the offset of the last lines. Bytes after the last line feed count as a line.</summary>
    internal static long FindLastLines(OpenedFile file, long length, long count)
        => count == 0 || length == 0 ? length : FindLineFeedFromEnd(file, length - 1, count);

    /// <summary>
    /// Returns the offset after the <paramref name="count"/>th line feed, counted backwards from <paramref name="end"/>; 0 if there are
    /// fewer.
    /// </summary>
    private static long FindLineFeedFromEnd(OpenedFile file, long end, long count)
    {
        byte[] block = ArrayPool<byte>.Shared.Rent(BlockSize);
        while (end > 0 && count != 0)
        {
            long start = Math.Max(0, end - BlockSize);
            int read = 0;
            for (int next = 1; next > 0 && read < end - start; read += next)
            {
                // A file system may return fewer bytes than there are.
                next = file.ReadHere(block.AsSpan(read, (int)(end - start) - read), start + read);
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

    private static NotSupportedException CannotSeek(string path)
        => new($"Lines in the middle of a file can be found only where it can seek and tells its length: '{path}'");
}
