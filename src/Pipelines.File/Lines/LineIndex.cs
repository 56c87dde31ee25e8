using System.Runtime.Intrinsics;

namespace Pipelines.File.Lines;

/// <summary>Finds the ends of all lines of a span at once, so that a line costs no search of its own.</summary>
internal static class LineIndex
{
    private const byte LineFeed = (byte)'\n';

    /// <summary>The number of bytes that one step compares.</summary>
    private const int BlockSize = 64;

    /// <summary>
    /// Writes the index of each line feed, in order, and returns how many there are. The array comes from the shared pool, and is replaced
    /// by a longer one where it is too short.
    /// </summary>
    internal static int Write(ReadOnlySpan<byte> bytes, ref int[] ends)
    {
        ref byte first = ref MemoryMarshal.GetReference(bytes);
        int count = 0;
        int start = 0;
        for (; bytes.Length - start >= BlockSize; start += BlockSize)
        {
            // Without a branch where a block has two line feeds at most: what is written beyond them, the next block overwrites.
            ulong found = Find(ref first, start) | ((ulong)Find(ref first, start + (BlockSize / 2)) << (BlockSize / 2));
            Reserve(ref ends, count);
            ref int end = ref Unsafe.Add(ref MemoryMarshal.GetArrayDataReference(ends), count);
            int more = BitOperations.PopCount(found);
            count += more;
            WritePair(ref end, start, ref found);
            if (more > 2)
            {
                WritePair(ref Unsafe.Add(ref end, 2), start, ref found);
                WritePair(ref Unsafe.Add(ref end, 4), start, ref found);
                WritePair(ref Unsafe.Add(ref end, 6), start, ref found);
                for (; more > 8; more -= 2)
                {
                    WritePair(ref Unsafe.Add(ref end, 8), start, ref found);
                    end = ref Unsafe.Add(ref end, 2);
                }
            }
        }

        Reserve(ref ends, count);
        for (; start < bytes.Length; start++)
        {
            if (bytes[start] == LineFeed)
            {
                ends[count++] = start;
            }
        }

        return count;
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

    /// <summary>
    /// Compares half a block: one bit for each line feed. Where the processor has no vectors of 32 bytes, the runtime takes smaller ones.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static uint Find(ref byte first, int start)
        => Vector256.Equals(Vector256.LoadUnsafe(ref first, (nuint)start), Vector256.Create(LineFeed)).ExtractMostSignificantBits();

    /// <summary>Writes the indexes of the first two bits, and takes these out.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static void WritePair(ref int end, int start, ref ulong found)
    {
        end = start + BitOperations.TrailingZeroCount(found);
        found &= found - 1;
        Unsafe.Add(ref end, 1) = start + BitOperations.TrailingZeroCount(found);
        found &= found - 1;
    }

    /// <summary>Makes room for a block full of line feeds, and for what is written beyond them.</summary>
    private static void Reserve(ref int[] ends, int count)
    {
        if (ends.Length - count < BlockSize)
        {
            int[] longer = ArrayPool<int>.Shared.Rent(2 * (count + BlockSize));
            ends.AsSpan(0, count).CopyTo(longer);
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
