namespace FilePipelinesBenchmarks.Memory;

/// <summary>One point of a memory grid: content that is built of equal pieces, again and again.</summary>
/// <param name="Size">Bytes of one write.</param>
/// <param name="Writes">How many make the content.</param>
/// <param name="Streams">How many streams one run builds, one after the other.</param>
/// <param name="Path">The file that the content goes to, which is made, where it goes to one.</param>
internal sealed record MemoryCase(int Size, int Writes, int Streams, string Path = "")
{
    /// <summary>One piece.</summary>
    internal byte[] Piece { get; } = MakePiece(Size);

    /// <summary>Bytes of the whole content.</summary>
    internal long Length => (long)Size * Writes;

    /// <summary>Checks the content's length, and its last byte.</summary>
    internal long Check(byte[] content)
        => content.Length == Length && content[^1] == Piece[^1] ? Length
            : throw new InvalidDataException($"{content.Length} bytes instead of {Length}.");

    /// <summary>Checks the length of the closed file. Part of every measured method.</summary>
    internal long CheckFile()
        => new FileInfo(Path).Length == Length ? Length : throw new InvalidDataException($"The file does not have {Length} bytes.");

    private static byte[] MakePiece(int size)
    {
        byte[] piece = new byte[size];
        new Random(1).NextBytes(piece);
        return piece;
    }
}
