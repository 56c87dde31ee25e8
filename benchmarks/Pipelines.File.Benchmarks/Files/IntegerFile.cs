using System.Runtime.InteropServices;

namespace FilePipelinesBenchmarks.Files;

/// <summary>The file of the 2019 grid: 64-bit little-endian integers 0, 1, 2, … Deleted when it is disposed.</summary>
internal sealed class IntegerFile : IDisposable
{
    private const int BlockIntegers = 128 * 1024;

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
    internal static IntegerFile Make(TemporaryFolder folder, long length) => Make(folder.PathOf($"int64_{length}.bin"), length);

    /// <summary>Makes one at <paramref name="path"/>, unless there is one of that length already.</summary>
    internal static IntegerFile MakeOnce(string path, long length)
        => new FileInfo(path) is { Exists: true } file && file.Length == length ? new IntegerFile(path, length) : Make(path, length);

    private static IntegerFile Make(string path, long length)
    {
        ArgumentOutOfRangeException.ThrowIfNotEqual(length % sizeof(long), 0);
        using FileStream stream = new(path, FileMode.Create, FileAccess.Write, FileShare.None, bufferSize: 0);
        long[] block = new long[BlockIntegers];
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
        byte[] expected = new byte[BlockIntegers];
        byte[] actual = new byte[BlockIntegers];
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
