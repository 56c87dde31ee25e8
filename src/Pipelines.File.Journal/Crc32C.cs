using System.Buffers.Binary;
using System.Numerics;

namespace Pipelines.File;

/// <summary>
/// CRC-32C (Castagnoli) of bytes. A step of the processor's takes as long as three can begin in, so three streams go on side by side.
/// </summary>
internal static class Crc32C
{
    /// <summary>Bytes of one stream: three of them are a little less than a record of 512 bytes.</summary>
    private const int StreamLength = 168;

    // CRCs are linear: what StreamLength zeros make of a CRC is what they make of its four bytes.
    private static readonly uint[][] s_behindZeros = [.. Enumerable.Range(0, sizeof(uint)).Select(BehindZeros)];

    /// <summary>Goes on from <paramref name="crc"/>, which is 0 or the CRC of the bytes before.</summary>
    internal static uint Append(uint crc, ReadOnlySpan<byte> bytes)
    {
        crc = ~crc;
        for (; bytes.Length >= 3 * StreamLength; bytes = bytes[(3 * StreamLength)..])
        {
            ReadOnlySpan<byte> first = bytes[..StreamLength];
            ReadOnlySpan<byte> second = bytes.Slice(StreamLength, StreamLength);
            ReadOnlySpan<byte> third = bytes.Slice(2 * StreamLength, StreamLength);
            uint crcOfSecond = 0;
            uint crcOfThird = 0;
            for (int i = 0; i <= StreamLength - sizeof(ulong); i += sizeof(ulong))
            {
                crc = BitOperations.Crc32C(crc, BinaryPrimitives.ReadUInt64LittleEndian(first[i..]));
                crcOfSecond = BitOperations.Crc32C(crcOfSecond, BinaryPrimitives.ReadUInt64LittleEndian(second[i..]));
                crcOfThird = BitOperations.Crc32C(crcOfThird, BinaryPrimitives.ReadUInt64LittleEndian(third[i..]));
            }

            crc = Behind(Behind(crc) ^ crcOfSecond) ^ crcOfThird;
        }

        for (; bytes.Length >= sizeof(ulong); bytes = bytes[sizeof(ulong)..])
        {
            crc = BitOperations.Crc32C(crc, BinaryPrimitives.ReadUInt64LittleEndian(bytes));
        }

        if (bytes.Length >= sizeof(uint))
        {
            crc = BitOperations.Crc32C(crc, BinaryPrimitives.ReadUInt32LittleEndian(bytes));
            bytes = bytes[sizeof(uint)..];
        }

        foreach (byte b in bytes)
        {
            crc = BitOperations.Crc32C(crc, b);
        }

        return ~crc;
    }

    /// <summary>What <see cref="StreamLength"/> zeros behind its bytes make of a CRC.</summary>
    private static uint Behind(uint crc)
        => s_behindZeros[0][(byte)crc] ^ s_behindZeros[1][(byte)(crc >> 8)]
            ^ s_behindZeros[2][(byte)(crc >> 16)] ^ s_behindZeros[3][crc >> 24];

    private static uint[] BehindZeros(int position)
    {
        uint[] crcs = new uint[byte.MaxValue + 1];
        for (uint value = 0; value < crcs.Length; value++)
        {
            uint crc = value << (8 * position);
            for (int i = 0; i < StreamLength; i += sizeof(ulong))
            {
                crc = BitOperations.Crc32C(crc, 0UL);
            }

            crcs[value] = crc;
        }

        return crcs;
    }
}
