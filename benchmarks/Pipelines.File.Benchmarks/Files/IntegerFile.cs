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

    /// <summary>Makes one, which leaves it in the page cache.</summary>
    /// <param name="folder">Where it goes.</param>
    /// <param name="length">Bytes, a multiple of eight.</param>
    /// <param name="pieceSize">Bytes of one write: the larger, the larger are the page cache's folios, and the faster is every way.</param>
    internal static IntegerFile Make(TemporaryFolder folder, long length, int pieceSize = LargePiece)
    {
        ArgumentOutOfRangeException.ThrowIfNotEqual(length % sizeof(long), 0);
        string path = folder.PathOf($"int64_{length}_{pieceSize}.bin");
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

    public void Dispose() => File.Delete(Path);
}
