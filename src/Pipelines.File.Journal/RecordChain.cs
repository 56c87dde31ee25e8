namespace Pipelines.File;

/// <summary>
/// Checks records in the order in which they were written: each has the next number and the CRC of the one before. Owned by whoever reads
/// a segment.
/// </summary>
/// <param name="seed">The CRC of the journal's id.</param>
/// <param name="sequence">The number of the next record.</param>
/// <param name="crc">The CRC of the record or statement before.</param>
internal sealed class RecordChain(uint seed, long sequence, uint crc)
{
    /// <summary>Why <see cref="Take"/> has taken no more.</summary>
    internal enum Stop
    {
        /// <summary>The bytes end: more of them may make a record.</summary>
        Bytes,

        /// <summary>The next record has the number at which to stop.</summary>
        Limit,

        /// <summary>What comes is no record, or not the next one.</summary>
        Invalid,
    }

    /// <summary>The number of the next record.</summary>
    internal long Sequence { get; private set; } = sequence;

    /// <summary>The CRC of the last record or statement.</summary>
    internal uint Crc { get; private set; } = crc;

    /// <summary>All records before this number are on the device: a later record, or whoever has synced, says so.</summary>
    internal long Proven { get; private set; } = sequence;

    /// <summary>Takes whole records and statements off the front.</summary>
    /// <param name="bytes">The bytes.</param>
    /// <param name="limit">The number of the first record that is not to be taken.</param>
    /// <param name="needed">With <see cref="Stop.Bytes"/>, how many bytes the next one needs; in this call its beginning.</param>
    /// <param name="stop">Why no more was taken.</param>
    /// <returns>How many bytes were taken.</returns>
    internal int Take(ReadOnlySpan<byte> bytes, long limit, out int needed, out Stop stop)
    {
        int taken = 0;
        while (true)
        {
            ReadOnlySpan<byte> rest = bytes[taken..];
            needed = RecordHeader.Length;
            stop = Stop.Bytes;
            if (rest.Length < RecordHeader.Length)
            {
                return taken;
            }

            RecordHeader header = RecordHeader.Read(rest);
            if (!header.IsPossible || header.Previous != Crc || header.Sequence != Sequence || header.Proven < 0)
            {
                stop = Stop.Invalid;
                return taken;
            }

            if (!header.IsStatement && Sequence >= limit)
            {
                stop = Stop.Limit;
                return taken;
            }

            needed = (int)JournalFormat.Padded(header.Size);
            if (rest.Length < needed)
            {
                return taken;
            }

            if (!header.IsIntact(rest, seed))
            {
                stop = Stop.Invalid;
                return taken;
            }

            taken += needed;
            Crc = header.Crc;
            Prove(header.Proven);
            Sequence += header.IsStatement ? 0 : 1;
        }
    }

    /// <summary>Records that all records before this number are on the device.</summary>
    internal void Prove(long before) => Proven = Math.Max(Proven, before);

    /// <summary>Goes back to where the proven ones of the records just taken end.</summary>
    /// <param name="taken">What was taken last, from its first byte on.</param>
    /// <param name="first">The number of the first record in it.</param>
    /// <param name="before">The CRC of the one before it.</param>
    /// <returns>How many bytes of it are proven.</returns>
    internal int GoBackToProven(ReadOnlySpan<byte> taken, long first, uint before)
    {
        (Sequence, Crc) = (first, before);
        int kept = 0;
        while (kept < taken.Length)
        {
            RecordHeader header = RecordHeader.Read(taken[kept..]);
            if (!header.IsStatement && Sequence >= Proven)
            {
                break;
            }

            Crc = header.Crc;
            Sequence += header.IsStatement ? 0 : 1;
            kept += (int)JournalFormat.Padded(header.Size);
        }

        return kept;
    }
}
