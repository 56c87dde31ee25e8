namespace Pipelines.File;

/// <summary>
/// Follows records in the order in which they were written: each has the next number and the CRC of the one before. Batches count when they
/// are whole. Owned by whoever reads a segment.
/// </summary>
internal sealed class RecordChain
{
    private readonly uint _seed;
    private uint _following;
    private uint _wholeFollowing;

    /// <summary>Begins in a segment.</summary>
    /// <param name="seed">The CRC of the segment's header.</param>
    /// <param name="position">The file offset of the next record.</param>
    /// <param name="sequence">Its number.</param>
    /// <param name="crc">The CRC of the record or statement before.</param>
    /// <param name="following">How many records of its batch are left, with it; 0 if that is not known.</param>
    internal RecordChain(uint seed, long position, long sequence, uint crc, uint following = 0)
    {
        _seed = seed;
        _following = _wholeFollowing = following;
        Position = WholePosition = position;
        Sequence = Whole = Proven = sequence;
        Crc = WholeCrc = crc;
    }

    /// <summary>Begins with the first record of a segment.</summary>
    internal RecordChain(SegmentHeader header)
        : this(header.Seed, JournalFormat.HeaderLength, header.First, header.Previous)
    {
    }

    /// <summary>The file offset behind the last record or statement.</summary>
    internal long Position { get; private set; }

    /// <summary>The number of the next record.</summary>
    internal long Sequence { get; private set; }

    /// <summary>The CRC of the last record or statement.</summary>
    internal uint Crc { get; private set; }

    /// <summary>As <see cref="Position"/>, behind the last batch that is whole.</summary>
    internal long WholePosition { get; private set; }

    /// <summary>The number behind the last batch that is whole. A record alone is a batch of one.</summary>
    internal long Whole { get; private set; }

    /// <summary>As <see cref="Crc"/>, of the last batch that is whole.</summary>
    internal uint WholeCrc { get; private set; }

    /// <summary>All records before this number are on the device: a later record, or whoever has synced, says so.</summary>
    internal long Proven { get; private set; }

    /// <summary>Whether a statement was met that says that another segment follows. Nothing comes behind it.</summary>
    internal bool IsContinued { get; private set; }

    /// <summary>Whether these bytes begin with the header of what comes next. Its content is to be looked at as well.</summary>
    internal bool TryRead(ReadOnlySpan<byte> bytes, out RecordHeader header)
    {
        header = RecordHeader.Read(bytes);
        return header.IsPossible && header.Previous == Crc && header.Sequence == Sequence && !IsContinued
            && (_following == 0 || (!header.IsStatement && header.Following == _following - 1))
            && header.IsOf(bytes, _seed, Position);
    }

    /// <summary>Goes on behind a record or statement that is intact.</summary>
    internal void Take(RecordHeader header)
    {
        Prove(header.Proven);
        if (header.IsStatement && header.Following != 0)
        {
            // It belongs to nothing: the next segment goes on from the record before.
            IsContinued = true;
            return;
        }

        Position += JournalFormat.Padded(header.Size);
        Crc = header.Crc;
        Sequence += header.IsStatement ? 0 : 1;
        _following = header.IsStatement ? 0 : header.Following;
        if (_following == 0)
        {
            (WholePosition, Whole, WholeCrc, _wholeFollowing) = (Position, Sequence, Crc, 0);
        }
    }

    /// <summary>Goes back to the end of the last whole batch.</summary>
    internal void Rewind() => (Position, Sequence, Crc, _following) = (WholePosition, Whole, WholeCrc, _wholeFollowing);

    /// <summary>Records that all records before this number are on the device.</summary>
    internal void Prove(long before) => Proven = Math.Max(Proven, before);
}
