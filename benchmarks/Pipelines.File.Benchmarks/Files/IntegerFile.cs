using System.Runtime.InteropServices;

namespace FilePipelines.Benchmarks;

/// <summary>The file of the 2019 grid: 64-bit little-endian integers 0, 1, 2, … Deleted when it is disposed.</summary>
internal sealed class IntegerFile : IDisposable
{
    /// <summary>
    /// Bytes of the pieces that the file is written in, unless other ones are asked for: the page cache then has it in large folios, as it
    /// has what was read from the device in large pieces.
    /// </summary>
    internal const int LargePiece = 1024 * 1024;

    /// <summary>Pieces of one page, which leave a file of small folios.</summary>
    internal const int SmallPiece = 4096;

    private IntegerFile(string path, long length)
    {
        Path = path;
        Length = length;
    }

    internal string Path { get; }

    /// <summary>Bytes: a multiple of eight.</summary>
    internal long Length { get; }

    /// <summary>0 + 1 + 2 + … as the file has them.</summary>
    internal long Sum => (Length / sizeof(long)) * ((Length / sizeof(long)) - 1) / 2;

    /// <summary>Makes one in <paramref name="folder"/>, which leaves it in the page cache.</summary>
    /// <param name="folder">Where it goes.</param>
    /// <param name="length">Bytes, a multiple of eight.</param>
    /// <param name="pieceSize">
    /// Bytes of one write: the larger they are, the larger are the folios that the page cache holds it in, and the faster is every way to
    /// read it.
    /// </param>
    internal static IntegerFile Make(TemporaryFolder folder, long length, int pieceSize = LargePiece)
        => Make(folder.PathOf($"int64_{length}_{pieceSize}.bin"), length, pieceSize);

    /// <summary>Makes one at <paramref name="path"/>, unless there is one of that length already.</summary>
    internal static IntegerFile MakeOnce(string path, long length)
        => new FileInfo(path) is { Exists: true } file && file.Length == length
            ? new IntegerFile(path, length)
            : Make(path, length, LargePiece);

    private static IntegerFile Make(string path, long length, int pieceSize)
    {
        ArgumentOutOfRangeException.ThrowIfNotEqual(length % sizeof(long), 0);
        using FileStream stream = new(path, FileMode.Create, FileAccess.Write, FileShare.None, bufferSize: 0);
        long[] block = new long[pieceSize / sizeof(long)];
        for (long next = 0; next < length / sizeof(long); next += block.Length)
        {
            for (int i = 0; i < block.Length; i++)
            {
                block[i] = next + i;
            }

            int integers = (int)Math.Min(block.Length, (length / sizeof(long)) - next);
            stream.Write(MemoryMarshal.AsBytes(block.AsSpan(0, integers)));
        }

        return new IntegerFile(path, length);
    }

    /// <summary>Compares every byte of another file with this one.</summary>
    internal void VerifyCopy(string path)
    {
        using FileStream own = new(Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0);
        using FileStream copy = new(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0);
        byte[] expected = new byte[LargePiece];
        byte[] actual = new byte[LargePiece];
        int length;
        do
        {
            length = own.ReadAtLeast(expected, expected.Length, throwOnEndOfStream: false);
            int copied = copy.ReadAtLeast(actual, actual.Length, throwOnEndOfStream: false);
            if (!expected.AsSpan(0, length).SequenceEqual(actual.AsSpan(0, copied)))
            {
                throw new InvalidDataException("The copy differs from its source.");
            }
        }
        while (length > 0);
    }

    public void Dispose() => File.Delete(Path);
}
