using System.Buffers.Binary;

namespace Pipelines.File;

/// <summary>
/// The 32 bytes before a record, or a statement, which is such a header alone: its Uncommitted is 0, so it says that all records before it
/// are on the device. Its CRC is right at its own place only, so it needs no content to be believed.
/// </summary>
/// <param name="Crc">CRC-32C that goes on from that of the segment's header: the file offset, and the header's bytes from 4 on.</param>
/// <param name="Size">Bytes with this header and without the zeros behind; 0 where nothing was written.</param>
/// <param name="IsStatement">Whether this is a statement, which has no number of its own.</param>
/// <param name="ContentCrc">CRC-32C of the record's bytes.</param>
/// <param name="Previous">The CRC of the record or statement before.</param>
/// <param name="Uncommitted">How many records directly before this one may not have been on the device when it was written.</param>
/// <param name="Following">
/// How many more records belong to the same batch. Of a statement: 0, or 1 if another segment follows.
/// </param>
/// <param name="Sequence">The record's number; of a statement that of the next record.</param>
internal readonly record struct RecordHeader(
    uint Crc, uint Size, bool IsStatement, uint ContentCrc, uint Previous, uint Uncommitted, uint Following, long Sequence)
{
    internal const int Length = 32;

    private const uint StatementBit = 0x8000_0000;

    /// <summary>All records before this number were on the device when this header was written.</summary>
    internal long Proven => Sequence - Uncommitted;

    /// <summary>The length of the record's content, bytes.</summary>
    internal int ContentLength => (int)Size - Length;

    /// <summary>Whether this can be a header: nothing that it says is impossible.</summary>
    internal bool IsPossible
        => (IsStatement ? Size == Length && Uncommitted == 0 && Following <= 1
            : Size is >= Length and <= JournalFormat.MaxRecordLength + Length)
            && Sequence >= Uncommitted;

    internal static RecordHeader Read(ReadOnlySpan<byte> bytes)
    {
        uint size = BinaryPrimitives.ReadUInt32LittleEndian(bytes[4..]);
        return new RecordHeader(
            BinaryPrimitives.ReadUInt32LittleEndian(bytes), size & ~StatementBit, (size & StatementBit) != 0,
            BinaryPrimitives.ReadUInt32LittleEndian(bytes[8..]), BinaryPrimitives.ReadUInt32LittleEndian(bytes[12..]),
            BinaryPrimitives.ReadUInt32LittleEndian(bytes[16..]), BinaryPrimitives.ReadUInt32LittleEndian(bytes[20..]),
            BinaryPrimitives.ReadInt64LittleEndian(bytes[24..]));
    }

    /// <summary>Whether the CRC of a header that begins these bytes is right.</summary>
    /// <param name="bytes">The header's bytes.</param>
    /// <param name="seed">The CRC of the segment's header.</param>
    /// <param name="position">The file offset at which it stands.</param>
    internal bool IsOf(ReadOnlySpan<byte> bytes, uint seed, long position) => CrcOf(bytes, seed, position) == Crc;

    /// <summary>Writes a header and its CRC. Returns the CRC.</summary>
    /// <param name="bytes">Where to.</param>
    /// <param name="header">What it says; its CRC means nothing.</param>
    /// <param name="seed">The CRC of the segment's header.</param>
    /// <param name="position">The file offset at which it will stand.</param>
    internal static uint Write(Span<byte> bytes, RecordHeader header, uint seed, long position)
    {
        BinaryPrimitives.WriteUInt32LittleEndian(bytes[4..], header.Size | (header.IsStatement ? StatementBit : 0));
        BinaryPrimitives.WriteUInt32LittleEndian(bytes[8..], header.ContentCrc);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes[12..], header.Previous);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes[16..], header.Uncommitted);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes[20..], header.Following);
        BinaryPrimitives.WriteInt64LittleEndian(bytes[24..], header.Sequence);
        uint crc = CrcOf(bytes, seed, position);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes, crc);
        return crc;
    }

    private static uint CrcOf(ReadOnlySpan<byte> bytes, uint seed, long position)
    {
        Span<byte> covered = stackalloc byte[sizeof(long) + Length - sizeof(uint)];
        BinaryPrimitives.WriteInt64LittleEndian(covered, position);
        bytes[sizeof(uint)..Length].CopyTo(covered[sizeof(long)..]);
        return Crc32C.Append(seed, covered);
    }
}
