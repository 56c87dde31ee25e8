using Pipelines.File.Memory;

namespace Pipelines.File;

/// <content>The chain of segments: growing, cutting, searching.</content>
public sealed partial class PooledMemoryStream
{
    // A pooled segment is used to its whole size. One that is too large for the pool is exactly as large as it has to be.
    private static FileSegment Rent(int size) => SegmentPool.Shared.Rent(size <= SegmentPool.MaxSize ? SegmentPool.SizeOf(size) : size);

    // Memory of the library's own pool: returning it does not throw.
    private static void Return(FileSegment? list) => _ = SegmentPool.Shared.Return(list);

    // An exchange, so that two calls at the same time return it once.
    private void ReturnAll() => Return(Interlocked.Exchange(ref _head, null));

    private int LengthOf(FileSegment segment) => segment == _tail ? _index - _arrayStart : segment.End;

    /// <summary>
    /// The bytes from <paramref name="position"/> on that are in one segment: at least one and at most <paramref name="count"/>. The
    /// position is before the end.
    /// </summary>
    private Span<byte> At(long position, int count)
    {
        FileSegment segment = Find(position);
        int start = (int)(position - segment.RunningIndex);
        return segment.Buffer.Span.Slice(start, Math.Min(count, LengthOf(segment) - start));
    }

    /// <summary>
    /// Makes the stream longer by at least one and at most <paramref name="count"/> bytes, and returns their memory. The caller fills it,
    /// and sets the position afterwards.
    /// </summary>
    private Span<byte> Append(long count)
    {
        if (_tail is null || _index == _arrayStart + _tail.Capacity)
        {
            AppendSegment((int)Math.Min(count, LargestSegmentSize));
        }

        int length = (int)Math.Min(count, _arrayStart + _tail!.Capacity - _index);
        _index += length;
        return new Span<byte>(_array, _index - length, length);
    }

    /// <summary>Appends zeros; if memory runs out, the stream is left as it was. The caller sets the position afterwards.</summary>
    private void AppendZeros(long count)
    {
        if (count > MaxUncheckedGrowth && count > GC.GetGCMemoryInfo().TotalAvailableMemoryBytes)
        {
            throw new InsufficientMemoryException(
                $"The stream would grow by {count} bytes, which is more than all the memory that this process may use.");
        }

        long end = End;
        long position = Place;
        try
        {
            while (count > 0)
            {
                Span<byte> zeros = Append(count);
                zeros.Clear();
                count -= zeros.Length;
            }
        }
        catch (OutOfMemoryException)
        {
            if (End > end)
            {
                Cut(end);
            }

            MoveTo(position);
            throw;
        }
    }

    /// <summary>
    /// Appends a new tail of at least <paramref name="size"/> bytes. It is also at least as large as the content, up to
    /// <see cref="LargestSegmentSize"/>.
    /// </summary>
    private void AppendSegment(int size)
    {
        long end = End;
        size = Math.Max(size, (int)Math.Clamp(end, FirstSegmentSize, LargestSegmentSize));
        FileSegment segment = Rent(size);
        segment.SetRunningIndex(end);

        // A tail without bytes is too small for the request, and is replaced.
        FileSegment? empty = _index == _arrayStart ? _tail : null;
        FileSegment? last = end == 0 ? null : empty is null ? _tail : Find(end - 1);
        if (last is null)
        {
            _head = segment;
        }
        else
        {
            last.SetEnd(LengthOf(last));
            last.NextSegment = segment;
        }

        SetTail(segment, 0);
        Return(empty);
    }

    private void SetTail(FileSegment segment, int used)
    {
        bool isArray = MemoryMarshal.TryGetArray(segment.Buffer, out ArraySegment<byte> memory);
        Debug.Assert(isArray);
        _tail = segment;
        _array = memory.Array;
        _arrayStart = memory.Offset;
        _index = memory.Offset + used;
        _limit = 0;
    }

    /// <summary>
    /// Makes the segment with the last of <paramref name="length"/> bytes the tail, and returns the segments after it to the pool. The
    /// first segment stays, even without bytes.
    /// </summary>
    private void Cut(long length)
    {
        FileSegment last = length == 0 ? _head! : Find(length - 1);
        FileSegment? rest = last.NextSegment;
        last.NextSegment = null;
        SetTail(last, (int)(length - last.RunningIndex));
        _current = null;
        if (Volatile.Read(ref _copies) == 0)
        {
            Return(rest);
        }
    }

    /// <summary>The segment with the byte at <paramref name="position"/>, which is before the end.</summary>
    private FileSegment Find(long position)
    {
        if (position >= _tail!.RunningIndex)
        {
            return _tail;
        }

        FileSegment segment = _current is { } current && current.RunningIndex <= position ? current : _head!;
        while (position >= segment.RunningIndex + segment.End)
        {
            segment = segment.NextSegment!;
        }

        return _current = segment;
    }
}
