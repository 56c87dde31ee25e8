using System.Numerics;
using System.Runtime.InteropServices;
using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>Touches every byte: the sum of the file's integers, a vector at a time.</summary>
internal struct Int64Sum : IBufferWork
{
    private long _sum;

    public void Take(ReadOnlySpan<byte> buffer)
    {
        ReadOnlySpan<long> integers = MemoryMarshal.Cast<byte, long>(buffer);
        if (integers.Length * sizeof(long) != buffer.Length)
        {
            throw new InvalidDataException(
                "A buffer that ends inside an integer: no way to read here gives one for a file of whole pages.");
        }

        ReadOnlySpan<Vector<long>> vectors = MemoryMarshal.Cast<long, Vector<long>>(integers);
        Vector<long> first = Vector<long>.Zero;
        Vector<long> second = Vector<long>.Zero;
        int i = 0;
        for (; i + 1 < vectors.Length; i += 2)
        {
            first += vectors[i];
            second += vectors[i + 1];
        }

        if (i < vectors.Length)
        {
            first += vectors[i];
        }

        long sum = Vector.Sum(first + second);
        foreach (long integer in integers[(vectors.Length * Vector<long>.Count)..])
        {
            sum += integer;
        }

        _sum += sum;
    }

    public readonly long Finish(IntegerFile file)
        => _sum == file.Sum ? _sum : throw new InvalidDataException($"The sum is {_sum} instead of {file.Sum}.");
}
