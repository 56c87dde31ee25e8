using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>What a segment has, as far as its records follow each other.</summary>
/// <param name="File">The segment.</param>
/// <param name="Header">Its header.</param>
/// <param name="End">The file offset behind the last record or statement.</param>
/// <param name="Next">The number of the next record.</param>
/// <param name="Crc">The CRC of the last record or statement.</param>
/// <param name="UnprovenAt">The file offset of the first record that no later one proves; <paramref name="End"/> if all are proven.</param>
/// <param name="IsContinued">Whether it says that another segment follows.</param>
internal sealed record SegmentState(
    SegmentFile File, SegmentHeader Header, long End, long Next, uint Crc, long UnprovenAt, bool IsContinued)
{
    /// <summary>Reads a segment up to the first byte that is no record of a whole batch. Waits for the device.</summary>
    internal static SegmentState Read(SegmentFile file, Action<long>? onRead, CancellationToken cancellationToken)
    {
        using SafeFileHandle handle = SegmentHeader.Open(file, out SegmentHeader header);
        return Read(handle, file, header, new RecordChain(header), onRead, cancellationToken);
    }

    /// <summary>Reads the rest of a segment.</summary>
    internal static SegmentState Read(
        SafeFileHandle handle, SegmentFile file, SegmentHeader header, RecordChain chain, Action<long>? onRead,
        CancellationToken cancellationToken)
    {
        using FileWindow window = new(handle, file, cancellationToken);
        Queue<(long Sequence, long Position)> unproven = new();
        while (TakeNext(window, chain, unproven, onRead))
        {
            while (unproven.TryPeek(out (long Sequence, long Position) oldest) && oldest.Sequence < chain.Proven)
            {
                unproven.Dequeue();
            }
        }

        long unprovenAt = unproven.TryPeek(out (long Sequence, long Position) first) ? Math.Min(first.Position, chain.WholePosition)
            : chain.WholePosition;
        return new SegmentState(file, header, chain.WholePosition, chain.Whole, chain.WholeCrc, unprovenAt, chain.IsContinued);
    }

    /// <summary>
    /// The last segment of a folder, and its end: not all of it is read. <see langword="null"/>: there is no journal.
    /// </summary>
    internal static SegmentState? LastOf(string folder, CancellationToken cancellationToken)
    {
        for (SegmentFile? missing = null; ;)
        {
            if (SegmentFile.In(folder) is not [.., var last])
            {
                return null;
            }

            try
            {
                using SafeFileHandle handle = SegmentHeader.Open(last, out SegmentHeader header);
                return Read(handle, last, header, SegmentSeek.Find(handle, last, header, long.MaxValue), null, cancellationToken);
            }
            catch (FileNotFoundException) when (last != missing)
            {
                // It was removed since it was listed.
                missing = last;
            }
        }
    }

    private static bool TakeNext(
        FileWindow window, RecordChain chain, Queue<(long Sequence, long Position)> unproven, Action<long>? onRead)
    {
        ReadOnlySpan<byte> bytes = window.At(chain.Position, RecordHeader.Length);
        if (bytes.Length < RecordHeader.Length || !chain.TryRead(bytes, out RecordHeader header))
        {
            return false;
        }

        long position = chain.Position + RecordHeader.Length;
        uint crc = 0;
        for (int left = header.ContentLength; left > 0;)
        {
            ReadOnlySpan<byte> piece = window.At(position, 1);
            if (piece.IsEmpty)
            {
                return false;
            }

            piece = piece[..Math.Min(left, piece.Length)];
            crc = Crc32C.Append(crc, piece);
            left -= piece.Length;
            position += piece.Length;
        }

        // With the zeros behind it.
        long end = chain.Position + JournalFormat.Padded(header.Size);
        if (crc != header.ContentCrc || (end > position && window.At(end - 1, 1).IsEmpty))
        {
            return false;
        }

        if (!header.IsStatement)
        {
            unproven.Enqueue((chain.Sequence, chain.Position));
        }

        chain.Take(header);
        onRead?.Invoke(JournalFormat.Padded(header.Size));
        return !chain.IsContinued;
    }
}
