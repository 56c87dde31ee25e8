using System.Buffers;
using System.Diagnostics;
using System.Runtime.InteropServices;
using Pipelines.File.Memory;

namespace Pipelines.File;

/// <content>The chain of segments: it grows, is cut, and is searched.</content>
public sealed partial class PooledMemoryStream
{
    // All of a pooled piece is used; what is larger than any of them is as large as it has to be.
    private static FileSegment Rent(int size) => SegmentPool.Shared.Rent(size <= SegmentPool.MaxSize ? SegmentPool.SizeOf(size) : size);

    // Memory of the own pool: giving it back does not throw.
    private static void Return(FileSegment? list) => _ = SegmentPool.Shared.Return(list);

    // Exchanged, so that even two calls at once give it back once.
    private void ReturnAll() => Return(Interlocked.Exchange(ref _head, null));

    private int LengthOf(FileSegment segment) => segment == _tail ? _index - _arrayStart : segment.End;

    /// <summary>Makes the stream longer, or, where memory runs out, leaves it as it was. The caller sets the position afterwards.</summary>
    private void AppendZeros(long count)
    {
        if (count > SurelyAvailable && count > GC.GetGCMemoryInfo().TotalAvailableMemoryBytes)
        {
            throw new InsufficientMemoryException($"The stream would grow by {count} bytes, which is more than all the memory that this process may use.");
        }

        long end = End;
        long position = Place;
        try
        {
            while (count > 0)
            {
                int room = _tail is null ? 0 : _arrayStart + _tail.Capacity - _index;
                if (room == 0)
                {
                    AppendSegment((int)Math.Min(count, LargestSegmentSize));
                    continue;
                }

                int length = (int)Math.Min(room, count);
                new Span<byte>(_array, _index, length).Clear();
                _index += length;
                count -= length;
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

    /// <summary>Makes a new tail, of at least <paramref name="size"/> bytes, and in any case one that makes this stream as large again, up to a limit.</summary>
    private void AppendSegment(int size)
    {
        long end = End;
        size = Math.Max(size, (int)Math.Clamp(end, FirstSegmentSize, LargestSegmentSize));
        FileSegment segment = Rent(size);
        segment.SetRunningIndex(end);
        if (_tail is null)
        {
            _head = segment;
        }
        else if (_index == _arrayStart)
        {
            // It is empty and too small for what was asked for.
            ReplaceEmptyTail(segment);
        }
        else
        {
            _tail.SetEnd(_index - _arrayStart);
            _tail.NextSegment = segment;
        }

        SetTail(segment, 0);
        _tailStart = end;
    }

    private void ReplaceEmptyTail(FileSegment segment)
    {
        FileSegment empty = _tail!;
        if (_head == empty)
        {
            _head = segment;
        }
        else
        {
            FileSegment before = Find(empty.RunningIndex - 1);
            before.NextSegment = segment;
        }

        if (_current == empty)
        {
            _current = null;
        }

        ForgetIndex();
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

    /// <summary>Makes the segment that holds the last of <paramref name="length"/> bytes the tail, and gives those behind it back. The first one stays.</summary>
    private void Cut(long length)
    {
        FileSegment last = length == 0 ? _head! : Find(length - 1);
        FileSegment? rest = last.NextSegment;
        last.NextSegment = null;
        SetTail(last, (int)(length - last.RunningIndex));
        _tailStart = last.RunningIndex;
        _current = null;
        ForgetIndex();
        if (Volatile.Read(ref _copies) == 0)
        {
            Return(rest);
        }
    }

    /// <summary>The segment that holds the byte at <paramref name="position"/>, which there is.</summary>
    private FileSegment Find(long position)
    {
        FileSegment segment = _current is { } current && current.RunningIndex <= position ? current : _head!;
        for (int steps = 0; segment != _tail && position >= segment.RunningIndex + segment.End; steps++)
        {
            if (steps == StepsWithoutIndex)
            {
                segment = FindFar(position);
                break;
            }

            segment = segment.NextSegment!;
        }

        return _current = segment;
    }

    private FileSegment FindFar(long position)
    {
        if (position >= _tailStart)
        {
            return _tail!;
        }

        CompleteIndex();
        int low = 0;
        int high = _indexed - 1;
        while (low < high)
        {
            int middle = (low + high + 1) / 2;
            if (_segments![middle].RunningIndex <= position)
            {
                low = middle;
            }
            else
            {
                high = middle - 1;
            }
        }

        return _segments![low];
    }

    private void CompleteIndex()
    {
        _segments ??= ArrayPool<FileSegment>.Shared.Rent(StepsWithoutIndex * 4);
        for (FileSegment? next = _indexed == 0 ? _head : _segments[_indexed - 1].NextSegment; next is not null; next = next.NextSegment)
        {
            if (_indexed == _segments.Length)
            {
                FileSegment[] larger = ArrayPool<FileSegment>.Shared.Rent(_indexed * 2);
                Array.Copy(_segments, larger, _indexed);
                ArrayPool<FileSegment>.Shared.Return(_segments, clearArray: true);
                _segments = larger;
            }

            _segments[_indexed++] = next;
        }
    }

    /// <summary>Has to be called before any segment of the chain is given back.</summary>
    private void ForgetIndex()
    {
        if (_segments is { } segments)
        {
            _segments = null;
            _indexed = 0;
            ArrayPool<FileSegment>.Shared.Return(segments, clearArray: true);
        }
    }
}
