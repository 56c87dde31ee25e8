using System.Buffers.Binary;

namespace Pipelines.File;

/// <summary>What a segment begins with.</summary>
/// <param name="Id">The journal's: all its segments have it, and no other journal's.</param>
/// <param name="First">The number of the first record.</param>
/// <param name="Before">The number of the first record of the segment before; <paramref name="First"/> if there was none.</param>
/// <param name="Created">When the segment began.</param>
/// <param name="Previous">The CRC of the last record or statement of the segment before; of the first segment <see cref="Seed"/>.</param>
internal sealed record SegmentHeader(Guid Id, long First, long Before, DateTimeOffset Created, uint Previous)
{
    private const int CrcOffset = 60;

    /// <summary>The CRC of the journal's id, from which the CRCs of its records go on.</summary>
    internal uint Seed { get; } = SeedOf(Id);

    /// <summary>The header of the first segment of a new journal.</summary>
    internal static SegmentHeader OfNew(long first)
    {
        Guid id = Guid.NewGuid();
        return new SegmentHeader(id, first, first, DateTimeOffset.UtcNow, SeedOf(id));
    }

    private static uint SeedOf(Guid id)
    {
        Span<byte> bytes = stackalloc byte[16];
        id.TryWriteBytes(bytes);
        return Crc32C.Append(0, bytes);
    }

    internal byte[] ToBytes()
    {
        byte[] bytes = new byte[JournalFormat.HeaderLength];
        JournalFormat.Magic.CopyTo(bytes);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes.AsSpan(8), JournalFormat.Version);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes.AsSpan(12), JournalFormat.HeaderLength);
        Id.TryWriteBytes(bytes.AsSpan(16));
        BinaryPrimitives.WriteInt64LittleEndian(bytes.AsSpan(32), First);
        BinaryPrimitives.WriteInt64LittleEndian(bytes.AsSpan(40), Before);
        BinaryPrimitives.WriteInt64LittleEndian(bytes.AsSpan(48), Created.ToUnixTimeMilliseconds());
        BinaryPrimitives.WriteUInt32LittleEndian(bytes.AsSpan(56), Previous);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes.AsSpan(CrcOffset), Crc32C.Append(0, bytes.AsSpan(0, CrcOffset)));
        return bytes;
    }

    /// <summary>Reads and checks the header of a segment.</summary>
    /// <exception cref="InvalidJournalException">It is none, or that of another segment.</exception>
    internal static SegmentHeader Read(SegmentFile segment)
    {
        byte[] bytes = new byte[JournalFormat.HeaderLength];
        using Microsoft.Win32.SafeHandles.SafeFileHandle handle = SegmentFile.OpenToRead(segment.Path);
        int read = SegmentFile.Read(handle, bytes, 0);

        if (!bytes.AsSpan().StartsWith(JournalFormat.Magic))
        {
            throw Invalid("This is no segment of a journal: it does not begin as one.");
        }

        uint version = BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(8));
        if (version != JournalFormat.Version)
        {
            throw Invalid($"The segment has version {version}; this program knows version {JournalFormat.Version}.");
        }

        if (read < bytes.Length || BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(CrcOffset))
            != Crc32C.Append(0, bytes.AsSpan(0, CrcOffset)))
        {
            throw Invalid("The header of the segment is damaged.");
        }

        SegmentHeader header = new(
            new Guid(bytes.AsSpan(16, 16)), BinaryPrimitives.ReadInt64LittleEndian(bytes.AsSpan(32)),
            BinaryPrimitives.ReadInt64LittleEndian(bytes.AsSpan(40)),
            DateTimeOffset.FromUnixTimeMilliseconds(BinaryPrimitives.ReadInt64LittleEndian(bytes.AsSpan(48))),
            BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(56)));
        return header.First == segment.First ? header
            : throw Invalid($"The segment's name is not that of its first record, which has the number {header.First}.");

        InvalidJournalException Invalid(string what) => new(what, segment.Path, 0, segment.First);
    }
}
