using Pipelines.File.Memory;

namespace Pipelines.File;

/// <content>The chain of segments: growing, cutting, searching.</content>
public sealed partial class PooledMemoryStream
{
    // An exchange, so that two calls at the same time return it once.
    private void ReturnAll() => MemorySegment.Return(Interlocked.Exchange(ref _head, null));

    private int LengthOf(MemorySegment segment) => segment == _tail ? _index : segment.End;

    /// <summary>
    /// The bytes from <paramref name="position"/> on that are in one segment: at least one and at most <paramref name="count"/>. The
    /// position is before the end.
    /// </summary>
    private Span<byte> At(long position, int count)
    {
        MemorySegment segment = Find(position);
        int start = (int)(position - segment.RunningIndex);
        return segment.Array.AsSpan(start, Math.Min(count, LengthOf(segment) - start));
    }

    /// <summary>
    /// Makes the stream longer by at least one and at most <paramref name="count"/> bytes, and returns their memory. The caller fills it,
    /// and sets the position afterwards.
    /// </summary>
    private Span<byte> Append(long count)
    {
        if (_tail is null || _index == _array!.Length)
        {
            AppendSegment((int)Math.Min(count, LargestSegmentSize));
        }

        int length = (int)Math.Min(count, _array!.Length - _index);
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
                // The pool does not get it: what keeps hundreds of MiB now may end the process.
                _ = Unlink(end);
            }

            MoveTo(position);
            throw;
        }
    }

    /// <summary>
    /// Appends a new tail of at least <paramref name="size"/> bytes, and of more if the content is long.
    /// </summary>
    private void AppendSegment(int size)
    {
        long end = End;
        size = Math.Max(size, end <= LargestDoubledSize ? Math.Max((int)end, FirstSegmentSize)
            : (int)Math.Clamp(end / 16, LargestDoubledSize, LargestSegmentSize));
        MemorySegment segment = MemorySegment.Rent(size, end);

        // A tail without bytes is too small for the request, and is replaced.
        MemorySegment? empty = _index == 0 ? _tail : null;
        MemorySegment? last = end == 0 ? null : empty is null ? _tail : Find(end - 1);
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
        MemorySegment.Return(empty);
    }

    private void SetTail(MemorySegment segment, int used)
    {
        _tail = segment;
        _array = segment.Array;
        _index = used;
        _limit = 0;
    }

    private void Cut(long length) => MemorySegment.Return(Unlink(length));

    /// <summary>
    /// Makes the segment with the last of <paramref name="length"/> bytes the tail, and returns the segments after it. The first segment
    /// stays, even without bytes.
    /// </summary>
    private MemorySegment? Unlink(long length)
    {
        MemorySegment last = length == 0 ? _head! : Find(length - 1);
        MemorySegment? rest = last.NextSegment;
        last.NextSegment = null;
        SetTail(last, (int)(length - last.RunningIndex));
        _current = null;
        return rest;
    }

    /// <summary>The segment with the byte at <paramref name="position"/>, which is before the end.</summary>
    private MemorySegment Find(long position)
    {
        if (position >= _tail!.RunningIndex)
        {
            return _tail;
        }

        MemorySegment segment = _current is { } current && current.RunningIndex <= position ? current : _head!;
        while (position >= segment.RunningIndex + segment.End)
        {
            segment = segment.NextSegment!;
        }

        return _current = segment;
    }
}
