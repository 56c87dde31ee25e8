using System.Runtime.Intrinsics;

namespace Pipelines.File.Lines;

/// <summary>Finds the ends of all lines of a span at once, so that a line costs no search of its own.</summary>
internal static class LineIndex
{
    private const byte LineFeed = (byte)'\n';

    /// <summary>The number of bytes that one step compares.</summary>
    private const int BlockSize = 64;

    /// <summary>After so many bytes it is decided again how to search, bytes.</summary>
    private const int ChunkSize = 64 * BlockSize;

    /// <summary>Lines that are longer, on average, are searched one by one, bytes.</summary>
    private const int LongLine = 4 * BlockSize;

    /// <summary>
    /// Writes -1 and the index of each line feed, in order, and returns how many line feeds there are. So line i is between the indexes i
    /// and i + 1. The array comes from the shared pool, and is replaced by a longer one where it is too short.
    /// </summary>
    internal static int Write(ReadOnlySpan<byte> bytes, ref int[] ends)
    {
        int count = 1;
        int start = 0;
        for (int index; ; start += index + 1, count++)
        {
            Reserve(ref ends, count);
            if (start < (long)count * LongLine)
            {
                (start, count) = WriteChunk(bytes, start, ends, count);
            }

            index = bytes[start..].IndexOf(LineFeed);
            if (index < 0)
            {
                ends[0] = -1;
                return count - 1;
            }

            ends[count] = start + index;
        }
    }

    /// <summary>
    /// Writes the indexes of the line feeds in whole blocks, and returns where the next block begins, and how many indexes there are.
    /// Not inlined, nor does it call: so its variables are in registers.
    /// </summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static (int Start, int Count) WriteChunk(ReadOnlySpan<byte> bytes, int start, int[] ends, int count)
    {
        ref byte first = ref MemoryMarshal.GetReference(bytes);
        ref int firstEnd = ref MemoryMarshal.GetArrayDataReference(ends);
        int last = Math.Min(bytes.Length, start + ChunkSize) - BlockSize;
        for (int full = ends.Length - (2 * BlockSize); start <= last && count <= full; start += BlockSize)
        {
            // Without a branch where a block has three line feeds at most: what is written beyond them, the next block overwrites.
            Vector512<byte> block = Vector512.LoadUnsafe(ref first, (uint)start);
            ulong found = Vector512.Equals(block, Vector512.Create(LineFeed)).ExtractMostSignificantBits();
            ref int end = ref Unsafe.Add(ref firstEnd, (uint)count);
            int more = BitOperations.PopCount(found);
            count += more;
            WriteThree(ref end, start, ref found);
            for (; more > 3; more -= 3)
            {
                end = ref Unsafe.Add(ref end, 3);
                WriteThree(ref end, start, ref found);
            }
        }

        return (start, count);
    }

    /// <summary>The line from <paramref name="start"/> to its line feed at <paramref name="end"/>, without the line end.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    internal static ReadOnlySpan<byte> Line(ReadOnlySpan<byte> bytes, int start, int end)
    {
        int length = end - start;
        if (length > 0 && bytes[end - 1] == '\r')
        {
            length--;
        }

        return bytes.Slice(start, length);
    }

    /// <summary>Writes the indexes of the first three bits, and takes these out.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static void WriteThree(ref int end, int start, ref ulong found)
    {
        end = start + BitOperations.TrailingZeroCount(found);
        found &= found - 1;
        Unsafe.Add(ref end, 1) = start + BitOperations.TrailingZeroCount(found);
        found &= found - 1;
        Unsafe.Add(ref end, 2) = start + BitOperations.TrailingZeroCount(found);
        found &= found - 1;
    }

    /// <summary>Makes room for a block full of line feeds, and for what is written beyond them.</summary>
    private static void Reserve(ref int[] ends, int count)
    {
        if (ends.Length - count < 2 * BlockSize)
        {
            int[] longer = ArrayPool<int>.Shared.Rent(2 * (count + BlockSize));
            ends.CopyTo(longer, 0);
            Release(ref ends);
            ends = longer;
        }
    }

    /// <summary>Gives the array back to the pool, and empties the variable.</summary>
    internal static void Release(ref int[] ends)
    {
        ArrayPool<int>.Shared.Return(ends);
        ends = [];
    }
}
