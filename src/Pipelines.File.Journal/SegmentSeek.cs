using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>Finds a record in a segment without reading it from its start: an intact header says which number it has.</summary>
internal static class SegmentSeek
{
    // What is less is read.
    private const long Near = 64 * 1024;

    // How much is looked at in one place. A record that is longer is not jumped over.
    private const int MostAtOnce = 128 * 1024;

    /// <summary>
    /// A chain that begins with a record, or before it. All records before the chain are on the device: one that a power failure has torn
    /// is cut by the next opening, with all behind it, so none is to be read from behind it.
    /// </summary>
    internal static RecordChain Find(SafeFileHandle handle, SegmentFile file, SegmentHeader header, long from)
    {
        RecordChain chain = FindNear(handle, file, header, from, out long proven);
        return proven < chain.Sequence ? FindNear(handle, file, header, proven, out _) : chain;
    }

    /// <summary>A chain that begins with a record, or not far before it, and what its first header says is on the device.</summary>
    private static RecordChain FindNear(SafeFileHandle handle, SegmentFile file, SegmentHeader header, long from, out long proven)
    {
        long low = JournalFormat.HeaderLength;
        long high = RandomAccess.GetLength(handle);
        RecordChain best = new(header);
        proven = header.First;
        byte[] bytes = [];
        uint seed = header.Seed;
        while (from > best.Sequence && high - low > Near)
        {
            bytes = bytes.Length == 0 ? new byte[MostAtOnce] : bytes;
            long middle = (low + ((high - low) / 2)) & ~7L;
            if (FirstIn(bytes.AsSpan(0, file.Read(handle, bytes, middle)), middle, seed) is not (long position, RecordHeader found))
            {
                // The end of what was written, or a long record.
                high = middle;
            }
            else if (found.Sequence > from || found.Sequence < best.Sequence)
            {
                high = middle;
            }
            else
            {
                best = new RecordChain(
                    seed, position, found.Sequence, found.Previous, found.IsStatement ? 0 : found.Following + 1);
                proven = found.Proven;
                low = position + RecordHeader.Length;
            }
        }

        return best;
    }

    private static (long Position, RecordHeader Header)? FirstIn(ReadOnlySpan<byte> bytes, long position, uint seed)
    {
        for (int start = 0; start + RecordHeader.Length <= bytes.Length; start += 8)
        {
            RecordHeader header = RecordHeader.Read(bytes[start..]);
            if (header.IsPossible && header.Size > 0 && header.IsOf(bytes[start..], seed, position + start))
            {
                return (position + start, header);
            }
        }

        return null;
    }
}
