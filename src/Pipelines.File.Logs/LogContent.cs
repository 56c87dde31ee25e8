using System.Buffers.Binary;
using System.IO.Compression;

namespace Pipelines.File;

/// <summary>What a file holds in front of an offset, by which it is recognized. The methods wait for the device.</summary>
internal static class LogContent
{
    /// <summary>How many bytes in front of an offset are looked at.</summary>
    internal const int MaxKnown = 1024;

    private const int MinHashed = 64;

    private const int BlockSize = 64 * 1024;

    /// <summary>
    /// What a checkpoint knows of a file: in the low half a hash of the line before the offset, because many lines of a log have the same
    /// end and their time at the beginning, but of at least 64 bytes; in the high half a hash of the first 1,024 bytes, or of all before
    /// the offset. It is never 0, which means unknown.
    /// </summary>
    /// <param name="last">The last bytes before the offset: <see cref="MaxKnown"/>, or all that there are.</param>
    /// <param name="beginning">The <see cref="HashOfBeginning"/>; not used if <paramref name="last"/> are all bytes.</param>
    internal static ulong Hash(ReadOnlySpan<byte> last, uint beginning)
    {
        int line = last.Length > MinHashed ? last[..^1].LastIndexOf((byte)'\n') + 1 : 0;
        beginning = last.Length < MaxKnown ? HashOfBeginning(last) : beginning;
        last = last[Math.Min(line, Math.Max(0, last.Length - MinHashed))..];
        return Math.Max(1, ((ulong)beginning << 32) | (uint)HashOf(last));
    }

    /// <summary>The hash of the first bytes of a file, <see cref="MaxKnown"/> at most.</summary>
    internal static uint HashOfBeginning(ReadOnlySpan<byte> first) => (uint)HashOf(first[..Math.Min(first.Length, MaxKnown)]);

    /// <summary>Whether two hashes are of files that begin with the same 1,024 bytes.</summary>
    internal static bool HasSameBeginning(ulong hash, ulong other) => hash >> 32 == other >> 32;

    private static ulong HashOf(ReadOnlySpan<byte> last)
    {
        const ulong Factor = 0xFF51AFD7ED558CCD;
        ulong hash = 0x9E3779B97F4A7C15 ^ (ulong)last.Length;
        for (; last.Length >= sizeof(ulong); last = last[sizeof(ulong)..])
        {
            hash = Mixed(hash ^ BinaryPrimitives.ReadUInt64LittleEndian(last));
        }

        foreach (byte one in last)
        {
            hash = Mixed(hash ^ one);
        }

        return Mixed(hash);

        static ulong Mixed(ulong value)
        {
            value *= Factor;
            return value ^ (value >> 32);
        }
    }

    /// <summary>Opens the content of a compressed file. The handle stays open.</summary>
    internal static Stream Decompress(SafeFileHandle file)
        => new GZipStream(FilePipeReader.Create(file, new() { LeaveOpen = true }).AsStream(), CompressionMode.Decompress);

    /// <summary>Reads bytes of a file. Returns their number, which is less at its end.</summary>
    /// <exception cref="IOException">They cannot be read: whether they are those that were read before is unknown.</exception>
    /// <exception cref="UnauthorizedAccessException">The same.</exception>
    internal static int Read(SafeFileHandle file, string path, long offset, Span<byte> bytes)
    {
        try
        {
            int length = 0;
            for (int read = 1; read > 0 && length < bytes.Length; length += read)
            {
                read = RandomAccess.Read(file, bytes[length..], offset + length);
            }

            return length;
        }
        catch (UnauthorizedAccessException e)
        {
            // RandomAccess does not know the path of a file that SharedFile has opened.
            throw new UnauthorizedAccessException($"Access to the path '{path}' is denied.", e);
        }
        catch (IOException e) when (!e.Message.Contains(path, StringComparison.Ordinal))
        {
            throw new IOException($"{e.Message} : '{path}'", e) { HResult = e.HResult };
        }
    }

    /// <summary>
    /// Returns the offset of the last lines that have a line end; 0 if there are fewer. Bytes after the last line feed are the beginning of
    /// a line, which does not count.
    /// </summary>
    internal static long FindLastLines(SafeFileHandle file, string path, long end, long count)
    {
        byte[] block = ArrayPool<byte>.Shared.Rent(BlockSize);
        for (; end > 0 && count >= 0; end = count >= 0 ? Math.Max(0, end - BlockSize) : end)
        {
            long start = Math.Max(0, end - BlockSize);
            Span<byte> rest = block.AsSpan(0, Read(file, path, start, block.AsSpan(0, (int)(end - start))));
            while (count >= 0 && rest.LastIndexOf((byte)'\n') is int index and >= 0)
            {
                count--;
                end = count < 0 ? start + index + 1 : end;
                rest = rest[..index];
            }
        }

        ArrayPool<byte>.Shared.Return(block);
        return end;
    }

    /// <summary>Reads a stream up to an offset.</summary>
    /// <param name="content">A stream at its beginning.</param>
    /// <param name="offset">The offset, bytes; <see cref="long.MaxValue"/>: to the end.</param>
    /// <param name="last">Receives the last bytes before the offset, at its beginning.</param>
    /// <param name="beginning">The hash of its first bytes.</param>
    /// <param name="cancellationToken">Ends it.</param>
    /// <returns>The offset that was reached, which is lower at the end of the stream, and the number of the last bytes.</returns>
    /// <exception cref="InvalidDataException">The content is damaged.</exception>
    internal static (long Offset, int Last) Skip(Stream content, long offset, Span<byte> last, out uint beginning,
        CancellationToken cancellationToken)
    {
        beginning = 0;
        byte[] block = ArrayPool<byte>.Shared.Rent(BlockSize + MaxKnown);
        int kept = 0;
        long reached = 0;
        try
        {
            for (int read = 1; read > 0 && reached < offset; reached += read)
            {
                cancellationToken.ThrowIfCancellationRequested();
                Span<byte> room = block.AsSpan(kept, (int)Math.Min(BlockSize, offset - reached));
                read = content.ReadAtLeast(room, Math.Min(room.Length, MaxKnown), throwOnEndOfStream: false);
                beginning = reached == 0 ? HashOfBeginning(block.AsSpan(0, read)) : beginning;
                int end = kept + read;
                kept = Math.Min(end, MaxKnown);
                block.AsSpan(end - kept, kept).CopyTo(block);
            }

            block.AsSpan(0, kept).CopyTo(last);
            return (reached, kept);
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(block);
        }
    }
}
