using Pipelines.File.IO;

namespace Pipelines.File.Lines;

/// <summary>Finds line ends in bytes, and from any offset of a file. The methods that read a file wait for the device.</summary>
internal static class LineSearch
{
    /// <summary>The number of bytes that one call reads.</summary>
    private const int BlockSize = 64 * 1024;

    /// <summary>Opens a file to search it.</summary>
    /// <exception cref="NotSupportedException">It is a FIFO: opening it would wait for the other side.</exception>
    internal static SafeFileHandle Open(string path, FileShare share, FileOptions options)
    {
        FileOpening.ThrowIfNotSupported(FilePipeBackend.Auto);
        string fullPath = Path.GetFullPath(path);
        ThrowIfFifo(fullPath);
        SafeFileHandle handle = new FileToOpen(fullPath, FileMode.Open, FileAccess.Read, share, options).OpenHandle();
        if (OperatingSystem.IsLinux())
        {
            UnlockedOpening.GiveUpLock(handle, FileProperties.Of(handle, fullPath));
        }

        return handle;
    }

    /// <exception cref="NotSupportedException">It is a FIFO: opening it would wait for the other side.</exception>
    internal static void ThrowIfFifo(string fullPath)
    {
        if (FileStatus.TypeOf(fullPath) == Libc.S_IFIFO)
        {
            throw CannotSeek(fullPath);
        }
    }

    /// <summary>The length of the file, bytes.</summary>
    /// <exception cref="NotSupportedException">The file cannot seek, or has no known length.</exception>
    internal static long LengthOf(SafeFileHandle handle, string? path)
        => FileProperties.Of(handle, path) is { CanSeek: true, KnownLength: { } length } ? length
            : throw CannotSeek(path ?? FileProperties.PathOf(handle));

    /// <summary>
    /// Returns the offset after the first separator at or after <paramref name="offset"/>; <paramref name="length"/> if there is none
    /// before that.
    /// </summary>
    internal static long FindEnd(SafeFileHandle handle, long offset, long length, byte separator)
    {
        byte[] block = ArrayPool<byte>.Shared.Rent(BlockSize);
        int index = -1;
        while (offset < length && index < 0)
        {
            int read = RandomAccess.Read(handle, block.AsSpan(0, (int)Math.Min(BlockSize, length - offset)), offset);
            index = block.AsSpan(0, read).IndexOf(separator);

            // 0 bytes: the file has become shorter.
            offset = index >= 0 ? offset + index + 1 : read == 0 ? length : offset + read;
        }

        ArrayPool<byte>.Shared.Return(block);
        return offset;
    }

    /// <summary>Returns the offset of the last lines. Bytes after the last line feed count as a line.</summary>
    internal static long FindLastLines(SafeFileHandle handle, long length, long count)
        => count == 0 || length == 0 ? length : FindLineFeedFromEnd(handle, length - 1, count);

    /// <summary>
    /// Returns the offset after the <paramref name="count"/>th line feed, counted backwards from <paramref name="end"/>; 0 if there are
    /// fewer.
    /// </summary>
    private static long FindLineFeedFromEnd(SafeFileHandle handle, long end, long count)
    {
        byte[] block = ArrayPool<byte>.Shared.Rent(BlockSize);
        while (end > 0 && count != 0)
        {
            long start = Math.Max(0, end - BlockSize);
            int read = 0;
            for (int next = 1; next > 0 && read < end - start; read += next)
            {
                // A file system may return fewer bytes than there are.
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
