using Pipelines.File.IO;

namespace Pipelines.File.Lines;

/// <summary>Finds line ends at places in a file that somebody jumps to. Every call waits for the device.</summary>
internal static class LineSearch
{
    /// <summary>Bytes that are read at once: first so many, then twice as many each time.</summary>
    private const int FirstBlock = 4 * 1024;

    private const int LargestBlock = 256 * 1024;

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
        => FileProperties.Of(handle, path) is { CanSeek: true, KnownLength: { } length } ? length : throw CannotSeek(path ?? FileProperties.PathOf(handle));

    /// <summary>The offset behind the first separator from <paramref name="offset"/> on; <paramref name="length"/> if there is none before it.</summary>
    internal static long FindEnd(SafeFileHandle handle, long offset, long length, byte separator)
    {
        byte[] block = ArrayPool<byte>.Shared.Rent(LargestBlock);
        try
        {
            for (int size = FirstBlock; offset < length; size = Math.Min(size * 2, LargestBlock))
            {
                int read = RandomAccess.Read(handle, block.AsSpan(0, (int)Math.Min(size, length - offset)), offset);
                int index = block.AsSpan(0, read).IndexOf(separator);
                if (index >= 0)
                {
                    return offset + index + 1;
                }

                // The file has become shorter.
                offset = read == 0 ? length : offset + read;
            }

            return length;
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(block);
        }
    }

    /// <summary>Where the last lines begin. A line feed at the very end ends the last one.</summary>
    internal static long FindLastLines(SafeFileHandle handle, long length, long count)
        => count == 0 || length == 0 ? length : FindLineFeedFromEnd(handle, length - 1, count);

    /// <summary>Where the last lines with their line ends begin: what stands behind the last line end is the beginning of a line, and not counted.</summary>
    internal static long FindLastWholeLines(SafeFileHandle handle, long length, long count) => FindLineFeedFromEnd(handle, length, unchecked(count + 1));

    /// <summary>The offset behind the line feed of that number, counted from an end; 0 if there are not so many.</summary>
    private static long FindLineFeedFromEnd(SafeFileHandle handle, long end, long count)
    {
        byte[] block = ArrayPool<byte>.Shared.Rent(LargestBlock);
        try
        {
            for (int size = FirstBlock; end > 0; size = Math.Min(size * 2, LargestBlock))
            {
                int wanted = (int)Math.Min(size, end);
                long offset = end - wanted;
                int read = 0;
                for (int more = -1; read < wanted && more != 0; read += more)
                {
                    more = RandomAccess.Read(handle, block.AsSpan(read, wanted - read), offset + read);
                }

                for (Span<byte> rest = block.AsSpan(0, read); rest.LastIndexOf((byte)'\n') is int index and >= 0; rest = rest[..index])
                {
                    if (--count == 0)
                    {
                        return offset + index + 1;
                    }
                }

                end = offset;
            }

            return 0;
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(block);
        }
    }

    private static NotSupportedException CannotSeek(string? path)
        => new($"Lines in the middle of a file can be found only where it can seek and tells its length{(path is null ? "." : $": '{path}'")}");
}
