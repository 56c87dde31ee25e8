using System.Buffers;
using System.Diagnostics;
using Pipelines.File.Backends;

namespace Pipelines.File.Buffers;

/// <summary>
/// The bytes that a reader has read and its caller has not consumed, as a chain of segments; the segments that are lent to the read under way; and the spare
/// ones. Not thread-safe: the reader's lock guards it. A lent segment, or the lent rest of the tail, is neither moved nor reused until <see cref="TakeBack"/>.
/// </summary>
internal sealed class ReadChain
{
    /// <summary>The most segments that one read fills.</summary>
    internal const int MaxSegmentsPerRead = 128;

    /// <summary>Where a read fills one segment only: the room, bytes, that makes it go on in the segment before.</summary>
    private const int MinRoomOfOnly = 2 * 1024;

    private readonly MemoryPool<byte>? _pool;
    private readonly int _segmentSize;
    private readonly int _maxSegments;

    private FileSegment? _head;
    private int _headIndex;
    private FileSegment? _tail;
    private int _count;

    private FileSegment? _lentHead;
    private FileSegment? _lentTail;
    private int _lentCount;
    private int _lentOfTail;

    private FileSegment? _spareHead;
    private FileSegment? _spareTail;
    private int _spareCount;

    internal ReadChain(MemoryPool<byte>? pool, int segmentSize, int maxSegments)
    {
        _pool = pool;
        _segmentSize = segmentSize;
        _maxSegments = Math.Min(maxSegments, MaxSegmentsPerRead);
    }

    /// <summary>Bytes consumed since the beginning.</summary>
    internal long Start { get; private set; }

    /// <summary>Bytes read since the beginning.</summary>
    internal long End { get; private set; }

    internal long Length => End - Start;

    internal ReadOnlySequence<byte> Sequence
        => End == Start ? default : new ReadOnlySequence<byte>(_head!, _headIndex, _tail!, _tail!.End);

    /// <summary>
    /// Gives the operation memory for up to <paramref name="bytes"/> bytes: the rest of the tail first, then further segments. Where the caller's pool throws, it has none.
    /// </summary>
    internal void Lend(FileOperation operation, long bytes)
    {
        Debug.Assert(_lentHead is null && _lentOfTail == 0 && bytes > 0);

        // Where a read fills one piece of memory, the last bytes of a segment are not worth a call.
        int minRoom = _maxSegments > 1 ? 1 : (int)Math.Min(bytes, MinRoomOfOnly);
        if (_tail is { } tail && tail.Room >= minRoom)
        {
            _lentOfTail = (int)Math.Min(tail.Room, bytes);
            operation.Add(tail, tail.End, _lentOfTail);
            bytes -= _lentOfTail;
        }

        try
        {
            while (bytes > 0 && operation.BufferCount < _maxSegments)
            {
                FileSegment segment = Rent((int)Math.Min(bytes, _segmentSize));
                if (_lentTail is null)
                {
                    _lentHead = segment;
                }
                else
                {
                    _lentTail.NextSegment = segment;
                }

                _lentTail = segment;
                _lentCount++;
                int length = (int)Math.Min(bytes, segment.Capacity);
                operation.Add(segment, 0, length);
                bytes -= length;
            }
        }
        catch
        {
            // A caller's pool may be empty: nothing is lent, then.
            TakeBack(0);
            operation.Clear();
            throw;
        }
    }

    /// <summary>Takes back what was lent, with the first <paramref name="filled"/> bytes of it read.</summary>
    internal void TakeBack(long filled)
    {
        End += filled;
        int ofTail = (int)Math.Min(filled, _lentOfTail);
        if (ofTail > 0)
        {
            _tail!.SetEnd(_tail.End + ofTail);
            filled -= ofTail;
        }

        _lentOfTail = 0;
        FileSegment? segment = _lentHead;
        FileSegment? last = null;
        int taken = 0;
        long runningIndex = End - filled;
        while (filled > 0)
        {
            int length = (int)Math.Min(filled, segment!.Capacity);
            segment.SetRunningIndex(runningIndex);
            segment.SetEnd(length);
            runningIndex += length;
            filled -= length;
            last = segment;
            segment = segment.NextSegment;
            taken++;
        }

        if (last is not null)
        {
            if (_tail is null)
            {
                _head = _lentHead;
                _headIndex = 0;
            }
            else
            {
                _tail.NextSegment = _lentHead;
            }

            _tail = last;
            _tail.NextSegment = null;
            _count += taken;
        }

        if (taken < _lentCount)
        {
            // Not used: first in line for the next read, while it is warm.
            _lentTail!.NextSegment = _spareHead;
            _spareHead = segment;
            _spareTail ??= _lentTail;
            _spareCount += _lentCount - taken;
        }

        _lentHead = _lentTail = null;
        _lentCount = 0;
    }

    /// <summary>The number of bytes since the beginning that a position of the caller's stands for.</summary>
    /// <exception cref="InvalidOperationException">The position is not one in this chain, or was consumed already.</exception>
    internal long IndexOf(SequencePosition position)
    {
        if (position.GetObject() is FileSegment segment && segment.Chain == this)
        {
            int integer = position.GetInteger();
            long index = segment.RunningIndex + integer;
            if ((uint)integer <= (uint)segment.End && index >= Start && index <= End)
            {
                return index;
            }
        }

        throw new InvalidOperationException("The position is not one of this reader's buffer: it belongs to another reader, or to bytes that were consumed already.");
    }

    /// <summary>Consumes everything before <paramref name="index"/>, which <see cref="IndexOf"/> gave.</summary>
    internal void ConsumeTo(long index)
    {
        Start = index;
        if (_head is null)
        {
            return;
        }

        if (index == End && _lentOfTail == 0)
        {
            AddSpares(_head, _tail!, _count);
            _head = _tail = null;
            _headIndex = 0;
            _count = 0;
            return;
        }

        FileSegment first = _head;
        FileSegment? last = null;
        FileSegment segment = first;
        int count = 0;
        while (index >= segment.RunningIndex + segment.End && segment != _tail)
        {
            last = segment;
            count++;
            segment = segment.NextSegment!;
        }

        _head = segment;
        _headIndex = (int)(index - segment.RunningIndex);
        if (last is not null)
        {
            _count -= count;
            AddSpares(first, last, count);
        }
    }

    /// <summary>Counts bytes as read and consumed that went to the caller's own memory. The chain is empty.</summary>
    internal void Skip(long bytes)
    {
        Debug.Assert(Length == 0 && _lentHead is null);
        DropEmptyTail();
        Start += bytes;
        End += bytes;
    }

    /// <summary>Gives everything back to the pool; what was not consumed counts as not read. Nothing is lent.</summary>
    internal void Release()
    {
        Debug.Assert(_lentHead is null && _lentOfTail == 0);
        ReturnAll(_head);
        ReturnAll(_spareHead);
        _head = _tail = _spareHead = _spareTail = null;
        _count = _spareCount = _headIndex = 0;
        End = Start;
    }

    private FileSegment Rent(int size)
    {
        while (_spareHead is { } spare)
        {
            _spareHead = spare.NextSegment;
            _spareCount--;
            if (_spareHead is null)
            {
                _spareTail = null;
            }

            if (spare.Capacity >= size || _pool is not null)
            {
                return spare;
            }

            // It was enough for the end of the file, but the file has grown.
            SegmentPool.Shared.Return(spare);
        }

        FileSegment segment = _pool is null
            ? SegmentPool.Shared.Rent(Math.Min(SegmentPool.SizeOf(size), _segmentSize))
            : SegmentPool.Shared.Rent(_maxSegments > 1 ? _segmentSize : Math.Min(SegmentPool.SizeOf(size), _segmentSize), _pool);
        segment.Chain = this;
        return segment;
    }

    private void AddSpares(FileSegment first, FileSegment last, int count)
    {
        if (_spareCount + count > _maxSegments)
        {
            last.NextSegment = null;
            for (FileSegment? segment = first; segment is not null;)
            {
                FileSegment? next = segment.NextSegment;
                if (_spareCount < _maxSegments)
                {
                    AddSpares(segment, segment, 1);
                }
                else
                {
                    SegmentPool.Shared.Return(segment);
                }

                segment = next;
            }

            return;
        }

        last.NextSegment = null;
        if (_spareTail is null)
        {
            _spareHead = first;
        }
        else
        {
            _spareTail.NextSegment = first;
        }

        _spareTail = last;
        _spareCount += count;
    }

    private void DropEmptyTail()
    {
        if (_head is not null)
        {
            AddSpares(_head, _tail!, _count);
            _head = _tail = null;
            _headIndex = _count = 0;
        }
    }

    private static void ReturnAll(FileSegment? segment)
    {
        while (segment is not null)
        {
            FileSegment? next = segment.NextSegment;
            SegmentPool.Shared.Return(segment);
            segment = next;
        }
    }
}
