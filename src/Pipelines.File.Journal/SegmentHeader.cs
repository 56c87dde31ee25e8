using System.Buffers.Binary;
using System.Security.Cryptography;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>What a segment begins with.</summary>
/// <param name="Id">The journal's: all its segments have it, and no other journal's.</param>
/// <param name="First">The number of the first record.</param>
/// <param name="Before">The number of the first record of the segment before; <paramref name="First"/> if there was none.</param>
/// <param name="Created">When the segment began.</param>
/// <param name="Epoch">A random number, which changes when numbers of records may be given a second time.</param>
/// <param name="EpochBefore">The epoch of the segment before; <paramref name="Epoch"/> if there was none.</param>
/// <param name="Previous">The CRC of the last record or statement of the segment before; 0 if there was none.</param>
internal sealed record SegmentHeader(
    Guid Id, long First, long Before, DateTimeOffset Created, long Epoch, long EpochBefore, uint Previous)
{
    private const int CrcOffset = 76;

    /// <summary>The header's CRC, from which those of its records go on: no record of another segment is taken for one of this.</summary>
    internal uint Seed => Crc32C.Append(0, ToBytes().AsSpan(0, CrcOffset));

    /// <summary>An epoch that no journal has had.</summary>
    internal static long NewEpoch() => BinaryPrimitives.ReadInt64LittleEndian(RandomNumberGenerator.GetBytes(sizeof(long))) & long.MaxValue;

    /// <summary>The header of the first segment of a new journal.</summary>
    internal static SegmentHeader OfNew(long first)
    {
        long epoch = NewEpoch();
        return new SegmentHeader(Guid.NewGuid(), first, first, Now(), epoch, epoch, 0);
    }

    /// <summary>The header of the segment that follows.</summary>
    /// <param name="last">The one before.</param>
    /// <param name="next">The number of its first record.</param>
    /// <param name="crc">The CRC of the last record or statement.</param>
    /// <param name="epoch">Its epoch.</param>
    internal static SegmentHeader After(SegmentHeader last, long next, uint crc, long epoch)
        => next > last.First ? new SegmentHeader(last.Id, next, last.First, Now(), epoch, last.Epoch, crc)
            : last with { Created = Now(), Epoch = epoch };

    // As the file has it.
    private static DateTimeOffset Now() => DateTimeOffset.FromUnixTimeMilliseconds(DateTimeOffset.UtcNow.ToUnixTimeMilliseconds());

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
        BinaryPrimitives.WriteInt64LittleEndian(bytes.AsSpan(56), Epoch);
        BinaryPrimitives.WriteInt64LittleEndian(bytes.AsSpan(64), EpochBefore);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes.AsSpan(72), Previous);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes.AsSpan(CrcOffset), Crc32C.Append(0, bytes.AsSpan(0, CrcOffset)));
        return bytes;
    }

    /// <summary>Opens a segment to read it, and checks its header.</summary>
    /// <exception cref="InvalidJournalException">It is none, or that of another segment.</exception>
    internal static SafeFileHandle Open(SegmentFile segment, out SegmentHeader header)
    {
        SafeFileHandle handle = SegmentFile.OpenToRead(segment.Path);
        try
        {
            header = Read(handle, segment);
            return handle;
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    /// <summary>Reads and checks the header of a segment.</summary>
    /// <exception cref="InvalidJournalException">It is none, or that of another segment.</exception>
    internal static SegmentHeader Read(SegmentFile segment)
    {
        using SafeFileHandle handle = Open(segment, out SegmentHeader header);
        return header;
    }

    private static SegmentHeader Read(SafeFileHandle handle, SegmentFile segment)
    {
        byte[] bytes = new byte[JournalFormat.HeaderLength];
        int read = segment.Read(handle, bytes, 0);
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
            != Crc32C.Append(0, bytes.AsSpan(0, CrcOffset)) || bytes.AsSpan(CrcOffset + sizeof(uint)).ContainsAnyExcept((byte)0))
        {
            throw Invalid("The header of the segment is damaged.");
        }

        long created = BinaryPrimitives.ReadInt64LittleEndian(bytes.AsSpan(48));
        long first = BinaryPrimitives.ReadInt64LittleEndian(bytes.AsSpan(32));
        long before = BinaryPrimitives.ReadInt64LittleEndian(bytes.AsSpan(40));
        if (first < 0 || before < 0 || before > first || created < DateTimeOffset.MinValue.ToUnixTimeMilliseconds()
            || created > DateTimeOffset.MaxValue.ToUnixTimeMilliseconds())
        {
            throw Invalid("The header of the segment says what cannot be.");
        }

        return first != segment.First
            ? throw Invalid($"The segment's name is not that of its first record, which has the number {first}.")
            : new SegmentHeader(
                new Guid(bytes.AsSpan(16, 16)), first, before, DateTimeOffset.FromUnixTimeMilliseconds(created),
                BinaryPrimitives.ReadInt64LittleEndian(bytes.AsSpan(56)), BinaryPrimitives.ReadInt64LittleEndian(bytes.AsSpan(64)),
                BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(72)));

        InvalidJournalException Invalid(string what) => new(what, segment.Path, 0, segment.First);
    }
}
