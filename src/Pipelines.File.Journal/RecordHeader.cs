using System.Buffers.Binary;

namespace Pipelines.File;

/// <summary>
/// The 24 bytes before a record, or a statement, which is such a header alone: its Uncommitted is 0, so it says that all records before it
/// are on the device.
/// </summary>
/// <param name="Crc">CRC-32C of the journal's id, the record's bytes, and the header's bytes from 4 on.</param>
/// <param name="Size">Bytes with this header and without the zeros behind; 0 where nothing was written.</param>
/// <param name="IsStatement">Whether this is a statement, which has no number of its own.</param>
/// <param name="Previous">The CRC of the record or statement before.</param>
/// <param name="Uncommitted">How many records directly before this one may not have been on the device when it was written.</param>
/// <param name="Sequence">The record's number; of a statement that of the next record.</param>
internal readonly record struct RecordHeader(uint Crc, uint Size, bool IsStatement, uint Previous, uint Uncommitted, long Sequence)
{
    internal const int Length = 24;

    private const int CrcLength = sizeof(uint);
    private const uint StatementBit = 0x8000_0000;

    /// <summary>All records before this number were on the device when this header was written.</summary>
    internal long Proven => Sequence - Uncommitted;

    internal static RecordHeader Read(ReadOnlySpan<byte> bytes)
    {
        uint size = BinaryPrimitives.ReadUInt32LittleEndian(bytes[4..]);
        return new RecordHeader(
            BinaryPrimitives.ReadUInt32LittleEndian(bytes), size & ~StatementBit, (size & StatementBit) != 0,
            BinaryPrimitives.ReadUInt32LittleEndian(bytes[8..]), BinaryPrimitives.ReadUInt32LittleEndian(bytes[12..]),
            BinaryPrimitives.ReadInt64LittleEndian(bytes[16..]));
    }

    /// <summary>Writes the header, and its CRC, which goes on from that of the id and the record's bytes. Returns the CRC.</summary>
    internal static uint Write(
        Span<byte> bytes, uint crc, int length, bool isStatement, uint previous, uint uncommitted, long sequence)
    {
        BinaryPrimitives.WriteUInt32LittleEndian(bytes[4..], (uint)(Length + length) | (isStatement ? StatementBit : 0));
        BinaryPrimitives.WriteUInt32LittleEndian(bytes[8..], previous);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes[12..], uncommitted);
        BinaryPrimitives.WriteInt64LittleEndian(bytes[16..], sequence);
        crc = Crc32C.Append(crc, bytes[CrcLength..Length]);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes, crc);
        return crc;
    }

    /// <summary>Whether this can be a header: what it says of its own size is possible.</summary>
    internal bool IsPossible => IsStatement ? Size == Length : Size is >= Length and <= JournalFormat.MaxRecordLength + Length;

    /// <summary>Whether the CRC is right.</summary>
    /// <param name="bytes">Begins with this header, and has the whole record.</param>
    /// <param name="seed">The CRC of the journal's id.</param>
    internal bool IsIntact(ReadOnlySpan<byte> bytes, uint seed)
        => Crc32C.Append(Crc32C.Append(seed, bytes[Length..(int)Size]), bytes[CrcLength..Length]) == Crc;
}
