using System.Runtime.Intrinsics;

namespace Pipelines.File.Lines;

/// <summary>
/// Where the line feeds of a segment are. A block of 64 bytes is compared at once, and its line feeds are then taken one by one, so that short lines cost no search each.
/// </summary>
internal struct LineFeeds
{
    private const int BlockSize = 64;

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

    /// <summary>Takes the next one of the current block. <see langword="false"/>: none is left; <see cref="Search"/> finds the next block.</summary>
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
        // Every load below lies within the segment, as the condition of the loop says.
        ref byte first = ref MemoryMarshal.GetReference(segment);
        int searched = _searched;
        for (; segment.Length - searched >= BlockSize; searched += BlockSize)
        {
            Vector512<byte> block = Vector512.LoadUnsafe(ref first, (nuint)searched);
            ulong found = Vector512.Equals(block, Vector512.Create((byte)'\n')).ExtractMostSignificantBits();
            if (found != 0)
            {
                Set(found, searched, searched + BlockSize);
                return true;
            }
        }

        Set(FindInShortBlock(segment[searched..]), searched, segment.Length);
        return _found != 0;
    }

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
