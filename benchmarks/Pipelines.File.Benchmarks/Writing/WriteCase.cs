using System.Runtime.InteropServices;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>One point of a write grid: what is written where, in pieces of which size.</summary>
/// <param name="Path">The file, which is made.</param>
/// <param name="Length">Bytes in all, a multiple of <paramref name="FlushSize"/>.</param>
/// <param name="FlushSize">
/// Bytes of one write, or between two flushes; a power of two up to the block of 1 MiB that is written again and again.
/// </param>
/// <param name="Preallocate">Whether the length is reserved first.</param>
/// <param name="Options">How the file is opened.</param>
internal sealed record WriteCase(string Path, long Length, int FlushSize, bool Preallocate, FileOptions Options = FileOptions.None)
{
    private const int BlockSize = 1024 * 1024;

    private static readonly byte[] s_block = MakeBlock();

    internal long PreallocationSize => Preallocate ? Length : 0;

    /// <summary>The piece that goes to <paramref name="offset"/>.</summary>
    internal ReadOnlyMemory<byte> PieceAt(long offset) => s_block.AsMemory((int)(offset % BlockSize), FlushSize);

    /// <summary>Checks the length that the closed file has. Part of every measured method.</summary>
    internal long Finish(long written)
        => written == Length && new FileInfo(Path).Length == Length ? written
            : throw new InvalidDataException($"{written} bytes instead of {Length} were written.");

    /// <summary>Checks every byte of the file. Not part of what is measured.</summary>
    internal void Verify()
    {
        using FileStream stream = new(Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0);
        byte[] buffer = new byte[BlockSize];
        for (long offset = 0; offset < Length;)
        {
            int length = stream.ReadAtLeast(buffer, BlockSize, throwOnEndOfStream: false);
            if (length == 0 || !buffer.AsSpan(0, length).SequenceEqual(s_block.AsSpan(0, length)))
            {
                throw new InvalidDataException($"The file differs from what was written, in the MiB at offset {offset}.");
            }

            offset += length;
        }
    }

    private static byte[] MakeBlock()
    {
        byte[] block = new byte[BlockSize];
        Span<long> integers = MemoryMarshal.Cast<byte, long>(block.AsSpan());
        for (int i = 0; i < integers.Length; i++)
        {
            integers[i] = i;
        }

        return block;
    }
}
