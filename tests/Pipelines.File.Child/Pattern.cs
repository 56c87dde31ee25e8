namespace FilePipelines.Child;

/// <summary>Bytes that tell where in a file they belong, so that a lost, doubled or moved byte shows.</summary>
public static class Pattern
{
    public static byte At(long index)
    {
        ulong mixed = ((ulong)index + 1) * 0x9E3779B97F4A7C15;
        return (byte)(mixed >> 56);
    }

    public static void Fill(Span<byte> span, long index)
    {
        for (int i = 0; i < span.Length; i++)
        {
            span[i] = At(index + i);
        }
    }

    public static byte[] Bytes(long length, long index = 0)
    {
        byte[] bytes = new byte[length];
        Fill(bytes, index);
        return bytes;
    }

    /// <summary>A content whose length and bytes tell its number.</summary>
    public static byte[] Version(int number) => Bytes(1 + (number * 7919 % 20_000), number * 1_000_003L);

    /// <summary>The first place where the bytes are not the pattern, or -1.</summary>
    public static long FirstDifference(ReadOnlySpan<byte> span, long index = 0)
    {
        for (int i = 0; i < span.Length; i++)
        {
            if (span[i] != At(index + i))
            {
                return index + i;
            }
        }

        return -1;
    }
}
