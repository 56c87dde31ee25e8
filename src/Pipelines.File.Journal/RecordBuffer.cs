using System.Buffers;

namespace Pipelines.File;

/// <summary>Where a caller's callback writes a record. One is kept for each thread.</summary>
internal sealed class RecordBuffer : IBufferWriter<byte>
{
    private const int LeastLength = 1024;

    // A longer array goes back to the shared pool after one record.
    private const int MostKept = 64 * 1024;

    [ThreadStatic]
    private static RecordBuffer? s_kept;

    private byte[] _bytes = ArrayPool<byte>.Shared.Rent(LeastLength);
    private int _length;
    private int _maxLength;

    /// <summary>How many bytes were written.</summary>
    internal int Length => _length;

    internal ReadOnlyMemory<byte> Written => _bytes.AsMemory(0, _length);

    internal static RecordBuffer Rent(int maxLength)
    {
        RecordBuffer buffer = s_kept ?? new RecordBuffer();
        s_kept = null;
        buffer._length = 0;
        buffer._maxLength = maxLength;
        return buffer;
    }

    internal void Return()
    {
        if (s_kept is null && _bytes.Length <= MostKept)
        {
            s_kept = this;
        }
        else
        {
            ArrayPool<byte>.Shared.Return(_bytes);
            _bytes = [];
        }
    }

    /// <summary>Adds bytes whose length was looked at.</summary>
    internal void Append(ReadOnlySpan<byte> bytes)
    {
        bytes.CopyTo(GetSpan(bytes.Length));
        _length += bytes.Length;
    }

    public void Advance(int count)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(count);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(count, _bytes.Length - _length);
        if (count > _maxLength - _length)
        {
            throw new ArgumentOutOfRangeException(
                nameof(count), (long)_length + count, $"The record is longer than MaxRecordLength, {_maxLength} bytes.");
        }

        _length += count;
    }

    public Memory<byte> GetMemory(int sizeHint = 0)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(sizeHint);
        if (_bytes.Length - _length < Math.Max(sizeHint, 1))
        {
            long length = Math.Max(_bytes.Length * 2L, (long)_length + Math.Max(sizeHint, 1));
            byte[] longer = ArrayPool<byte>.Shared.Rent((int)Math.Min(Array.MaxLength, length));
            Written.CopyTo(longer);
            ArrayPool<byte>.Shared.Return(_bytes);
            _bytes = longer;
        }

        return _bytes.AsMemory(_length);
    }

    public Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;
}
