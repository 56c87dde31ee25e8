namespace FilePipelines.Tests;

public sealed class Crc32CTests
{
    [Fact]
    public void Append_CheckValue_IsThatOfTheCatalogue() => Assert.Equal(0xE3069283, Crc32C.Append(0, "123456789"u8));

    [Fact]
    public void Append_AnyLengthAndAnySplit_IsThatOfTheBits()
    {
        byte[] bytes = Pattern.Bytes(2600, 7);
        uint bits = 0;
        for (int length = 0; length <= bytes.Length; length++)
        {
            Assert.Equal(bits, Crc32C.Append(0, bytes.AsSpan(0, length)));
            int split = length * 31 % (length + 1);
            Assert.Equal(bits, Crc32C.Append(Crc32C.Append(0, bytes.AsSpan(0, split)), bytes.AsSpan(split, length - split)));
            bits = length < bytes.Length ? AppendBits(bits, bytes[length]) : bits;
        }
    }

    /// <summary>The definition: the reflected polynomial, bit by bit.</summary>
    private static uint AppendBits(uint crc, byte value)
    {
        crc = ~crc ^ value;
        for (int bit = 0; bit < 8; bit++)
        {
            crc = (crc >> 1) ^ ((crc & 1) * 0x82F63B78);
        }

        return ~crc;
    }
}
