using System.Buffers;
using System.Buffers.Binary;
using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>
/// The form of a record: its length (4 bytes, little-endian), a CRC-32C (4 bytes), its bytes. The CRC goes on from the one of the record
/// before, so that an old record behind a torn one is no continuation of a new one in its place.
/// </summary>
internal static class CrashJournalRecord
{
    internal const int HeaderLength = 8;

    /// <summary>The most bytes of one record: what claims to be longer is no record.</summary>
    internal const int MaxLength = 16 * 1024 * 1024;

    /// <summary>The CRC before the first record. Not 0, so that zeros, which a preallocated file is full of, are no record.</summary>
    internal const uint FirstSeed = 0x4A524E4C;

    /// <summary>What a journal begins with, so that no other file is taken for one, and cut.</summary>
    internal static ReadOnlySpan<byte> Magic => "JOURNAL1"u8;

    /// <summary>Writes header and bytes; <paramref name="seed"/> is the CRC of the record before, and becomes that of this one.</summary>
    internal static void Write(IBufferWriter<byte> output, ReadOnlySpan<byte> bytes, ref uint seed)
    {
        Span<byte> header = output.GetSpan(HeaderLength);
        BinaryPrimitives.WriteInt32LittleEndian(header, bytes.Length);
        seed = Crc32C.Append(Crc32C.Append(seed, header[..4]), bytes);
        BinaryPrimitives.WriteUInt32LittleEndian(header[4..], seed);
        output.Advance(HeaderLength);
        output.Write(bytes);
    }

    /// <summary>
    /// Takes one record off the front of <paramref name="input"/>. <see langword="false"/>: it is not all there, or torn, or no record at
    /// all; <paramref name="needed"/> bytes would tell more, 0 if no more bytes make it one.
    /// </summary>
    internal static bool TryRead(ref ReadOnlySequence<byte> input, ref uint seed, out ReadOnlySequence<byte> record, out long needed)
    {
        record = default;
        needed = HeaderLength;
        if (input.Length < HeaderLength)
        {
            return false;
        }

        Span<byte> header = stackalloc byte[HeaderLength];
        input.Slice(0, HeaderLength).CopyTo(header);
        int length = BinaryPrimitives.ReadInt32LittleEndian(header);
        needed = length is >= 0 and <= MaxLength ? HeaderLength + length : 0;
        if (needed == 0 || input.Length < needed)
        {
            return false;
        }

        ReadOnlySequence<byte> bytes = input.Slice(HeaderLength, length);
        uint crc = Crc32C.Append(seed, header[..4]);
        foreach (ReadOnlyMemory<byte> part in bytes)
        {
            crc = Crc32C.Append(crc, part.Span);
        }

        if (crc != BinaryPrimitives.ReadUInt32LittleEndian(header[4..]))
        {
            needed = 0;
            return false;
        }

        seed = crc;
        record = bytes;
        input = input.Slice(needed);
        return true;
    }
}
