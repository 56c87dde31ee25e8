using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Cold;

/// <summary>Readers that each read pieces of a file at places of their own, all at once; the places are the same in every run.</summary>
/// <param name="File">What is read.</param>
/// <param name="Readers">How many read at once.</param>
/// <param name="ReadsPerReader">How many pieces each reads, one after the other.</param>
/// <param name="PieceSize">Bytes of one piece.</param>
internal sealed record RandomReadCase(IntegerFile File, int Readers, int ReadsPerReader, int PieceSize)
{
    /// <summary>Where a reader's pieces begin.</summary>
    internal IEnumerable<long> OffsetsOf(int reader)
    {
        Random random = new(reader);
        for (int i = 0; i < ReadsPerReader; i++)
        {
            yield return random.NextInt64(File.Length / PieceSize) * PieceSize;
        }
    }

    /// <summary>Checks a piece: it begins and ends with the integers that stand there.</summary>
    internal long Look(long offset, ReadOnlySpan<byte> piece)
        => piece.Length == PieceSize && BitConverter.ToInt64(piece) == offset / sizeof(long)
            && BitConverter.ToInt64(piece[^sizeof(long)..]) == ((offset + PieceSize) / sizeof(long)) - 1
            ? PieceSize
            : throw new InvalidDataException($"Not the bytes at offset {offset}.");

    internal long Finish(long[] bytes)
        => bytes.Sum() == (long)Readers * ReadsPerReader * PieceSize ? bytes.Sum() : throw new InvalidDataException("Pieces are missing.");
}
