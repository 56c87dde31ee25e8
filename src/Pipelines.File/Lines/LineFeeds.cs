using System.Runtime.Intrinsics;

namespace Pipelines.File.Lines;

/// <summary>
/// Finds the line feeds of a segment. It compares a block of 64 bytes at once, and then returns its line feeds one by one, so a short line
/// costs no search of its own.
/// </summary>
internal struct LineFeeds
{
    private const int BlockSize = 64;
    private const int VectorSize = BlockSize / 2;

    // The line feeds of the block at index _block that were not taken yet, one bit each.
    private ulong _found;
    private int _block;

    // The index up to which the segment is searched.
    private int _searched;

    /// <summary>The number of line feeds that were found so far, in all segments.</summary>
    internal long Count { get; set; }

    /// <summary>Begins another segment, whose first <paramref name="searched"/> bytes are known to hold no line feed.</summary>
    internal void Begin(int searched)
    {
        _found = 0;
        _searched = searched;
    }

    /// <summary>
    /// Takes the next line feed of the current block. Returns <see langword="false"/> if none is left: then <see cref="Search"/> finds the
    /// next block.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    internal bool TryTake(out int index)
    {
        ulong found = _found;
        if (found == 0)
        {
            index = 0;
            return false;
        }

        _found = found & (found - 1);
        index = _block + BitOperations.TrailingZeroCount(found);
        return true;
    }

    /// <summary>Moves to the next block with a line feed. Returns <see langword="false"/> if the segment has no more.</summary>
    internal bool Search(ReadOnlySpan<byte> segment)
    {
        // The conditions of the loops keep every load within the segment.
        ref byte first = ref MemoryMarshal.GetReference(segment);
        int searched = _searched;
        while (segment.Length - searched >= BlockSize)
        {
            ulong found = Vector(ref first, searched).ExtractMostSignificantBits()
                | ((ulong)Vector(ref first, searched + VectorSize).ExtractMostSignificantBits() << VectorSize);
            if (found != 0)
            {
                Set(found, searched, searched + BlockSize);
                return true;
            }

            // Long lines: four vectors at once, until one holds a line feed.
            for (searched += BlockSize; segment.Length - searched >= 4 * VectorSize; searched += 4 * VectorSize)
            {
                Vector256<byte> some = Vector(ref first, searched) | Vector(ref first, searched + VectorSize);
                some |= Vector(ref first, searched + (2 * VectorSize)) | Vector(ref first, searched + (3 * VectorSize));
                if (some != Vector256<byte>.Zero)
                {
                    break;
                }
            }
        }

        Set(FindInShortBlock(segment[searched..]), searched, segment.Length);
        return _found != 0;
    }

    /// <summary>Compares 32 bytes: all bits of a byte are set if it is a line feed.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static Vector256<byte> Vector(ref byte first, int index)
        => Vector256.Equals(Vector256.LoadUnsafe(ref first, (nuint)index), Vector256.Create((byte)'\n'));

    private static ulong FindInShortBlock(ReadOnlySpan<byte> block)
    {
        ulong found = 0;
        for (int i = 0; i < block.Length; i++)
        {
            found |= block[i] == '\n' ? 1UL << i : 0;
        }

        return found;
    }

    private void Set(ulong found, int block, int searched)
    {
        _found = found;
        _block = block;
        _searched = searched;
        Count += BitOperations.PopCount(found);
    }
}
