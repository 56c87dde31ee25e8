using System.Runtime.Intrinsics;

namespace Pipelines.File.Lines;

/// <summary>
/// Where the line feeds of a segment are. A block of 64 bytes is compared at once, and its line feeds are then taken one by one, so that
/// short lines cost no search each.
/// </summary>
internal struct LineFeeds
{
    private const int BlockSize = 64;
    private const int VectorSize = BlockSize / 2;

    // The line feeds of the block that begins at index _block, a bit each, which were not taken yet.
    private ulong _found;
    private int _block;

    // Everything before is searched.
    private int _searched;

    /// <summary>How many there were in the segments so far.</summary>
    internal long Count { get; set; }

    /// <summary>Goes to another segment, whose first bytes are known to be no line feeds.</summary>
    internal void Begin(int searched)
    {
        _found = 0;
        _searched = searched;
    }

    /// <summary>
    /// Takes the next one of the current block. <see langword="false"/>: none is left; <see cref="Search"/> finds the next block.
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

    /// <summary>Goes on to the next block that has one. <see langword="false"/>: the whole segment is searched.</summary>
    internal bool Search(ReadOnlySpan<byte> segment)
    {
        // Every load below lies within the segment, as the conditions of the loops say.
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

            // Long lines: four vectors at once for as long as there is none.
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

    /// <summary>Which bytes are line feeds: all bits of those.</summary>
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
