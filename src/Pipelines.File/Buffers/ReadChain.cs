using System.Buffers;
using System.Diagnostics;
using Pipelines.File.Backends;

namespace Pipelines.File.Buffers;

/// <summary>
/// The bytes that a reader has read and its caller has not consumed, as a chain of segments; the segments of the read under way; and the spare ones.
/// </summary>
/// <remarks>
/// The reader's lock guards everything but the segments of the read under way, which belong to whoever has the operation: from <see cref="BeginRead"/> to
/// <see cref="EndRead"/> they, and the rest of the tail's memory, are neither moved nor reused. What a method returns is a list of segments for the caller to give
/// back to the pool without the lock, as that may run the code of a caller's memory pool.
/// </remarks>
internal sealed class ReadChain
{
    /// <summary>The most segments that one read fills.</summary>
    internal const int MaxSegmentsPerRead = 128;

    /// <summary>Where a read fills one segment only: the room, bytes, that makes it go on in the segment before.</summary>
    private const int MinRoomOfOnly = 2 * 1024;

    private readonly MemoryPool<byte>? _pool;
    private readonly int _segmentSize;
    private readonly int _maxSegments;
    private readonly int _maxSpares;
    private readonly int _alignment;

    private FileSegment? _head;
    private int _headIndex;
    private FileSegment? _tail;

    // Of the read under way: its segments, and how much it may fill of the tail.
    private FileSegment? _readHead;
    private FileSegment? _readTail;
    private int _readCount;
    private int _readOfTail;

    // Consumed or unused, and kept for the next read, which fills no more than these: segments of the full size.
    private FileSegment? _spares;
    private FileSegment? _lastSpare;
    private int _spareCount;

    // What the caller had when the chain was released.
    private FileSegment? _out;

    /// <param name="pool">Where memory comes from; <see langword="null"/> for the library's own pool.</param>
    /// <param name="segmentSize">Bytes of a segment.</param>
    /// <param name="maxSegments">How many segments one read fills.</param>
    /// <param name="bytesPerRead">Bytes that one read asks for, where the file has as many.</param>
    /// <param name="alignment">With the library's own pool, where reads had better begin: at multiples of this, file offset in bytes.</param>
    internal ReadChain(MemoryPool<byte>? pool, int segmentSize, int maxSegments, int bytesPerRead, int alignment = 1)
    {
        _alignment = alignment;
        _pool = pool;
        _segmentSize = segmentSize;
        _maxSegments = Math.Min(maxSegments, MaxSegmentsPerRead);
        _maxSpares = Math.Clamp(bytesPerRead / segmentSize, 1, _maxSegments);
    }

    /// <summary>Bytes consumed since the beginning.</summary>
    internal long Start { get; private set; }

    /// <summary>Bytes examined since the beginning.</summary>
    internal long Examined { get; private set; }

    /// <summary>Bytes read since the beginning.</summary>
    internal long End { get; private set; }

    internal long Length => End - Start;

    internal bool HasUnexamined => End > Examined;

    internal ReadOnlySequence<byte> Sequence
        => End == Start ? default : new ReadOnlySequence<byte>(_head!, _headIndex, _tail!, _tail!.End);

    /// <summary>
    /// Gives the operation the memory that is here for up to <paramref name="bytes"/> bytes: the rest of the tail, then spare segments. Returns how many bytes are still
    /// without memory, for <see cref="RentForRead"/>. Under the lock.
    /// </summary>
    internal long BeginRead(FileOperation operation, long bytes)
    {
        Debug.Assert(_readHead is null && _readOfTail == 0 && bytes > 0);

        // Where a read fills one piece of memory, the last bytes of a segment are not worth a call.
        int minRoom = _maxSegments > 1 ? 1 : (int)Math.Min(bytes, MinRoomOfOnly);
        if (_tail is { } tail && tail.Room >= minRoom)
        {
            _readOfTail = (int)Math.Min(tail.Room, bytes);
            operation.Add(tail, tail.End, _readOfTail);
            bytes -= _readOfTail;
        }

        while (bytes > 0 && operation.BufferCount < _maxSegments && _spares is { } spare)
        {
            _spares = spare.NextSegment;
            _spareCount--;
            bytes -= AddForRead(operation, spare, bytes);
        }

        return operation.BufferCount < _maxSegments ? bytes : 0;
    }

    /// <summary>
    /// Rents memory for the <paramref name="bytes"/> that <see cref="BeginRead"/> found none for. Called without the lock by whoever has the operation. Where a caller's pool throws, the
    /// owner ends the read with <see cref="EndRead"/>.
    /// </summary>
    internal void RentForRead(FileOperation operation, long bytes)
    {
        while (bytes > 0 && operation.BufferCount < _maxSegments)
        {
            int size = (int)Math.Min(bytes, _segmentSize);

            // Where the read ends at a boundary the segment does, too, as the next read would go on in it, and cross the next boundary.
            bool isExact = _alignment > 1 && (operation.Offset + operation.Length + size) % _alignment == 0;
            FileSegment segment = _pool is null
                ? SegmentPool.Shared.Rent(isExact ? size : Math.Min(SegmentPool.SizeOf(size), _segmentSize))
                : SegmentPool.Shared.Rent(_segmentSize, _pool);
            segment.Chain = this;
            bytes -= AddForRead(operation, segment, bytes);
        }
    }

    /// <summary>The read is over, and has filled the first <paramref name="filled"/> bytes of its memory. Under the lock.</summary>
    internal FileSegment? EndRead(long filled)
    {
        End += filled;
        int ofTail = (int)Math.Min(filled, _readOfTail);
        if (ofTail > 0)
        {
            _tail!.SetEnd(_tail.End + ofTail);
            filled -= ofTail;
        }

        FileSegment? segment = _readHead;
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
            last.NextSegment = null;
            if (_tail is null)
            {
                _head = _readHead;
                _headIndex = 0;
            }
            else
            {
                _tail.NextSegment = _readHead;
            }

            _tail = last;
        }

        int unused = _readCount - taken;
        _readHead = _readTail = null;
        _readCount = _readOfTail = 0;
        return unused > 0 ? AddSpares(segment!) : null;
    }

    /// <summary>The number of bytes since the beginning that a position of the caller's stands for. Under the lock.</summary>
    /// <exception cref="InvalidOperationException">The position is not one in this chain, or everything was consumed already.</exception>
    internal long IndexOf(SequencePosition position)
    {
        if (Length > 0 && position.GetObject() is FileSegment segment && segment.Chain == this)
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

    /// <summary>Consumes everything before <paramref name="consumed"/>; the caller has looked at everything before <paramref name="examined"/>. Under the lock.</summary>
    internal FileSegment? AdvanceTo(long consumed, long examined)
    {
        Start = consumed;
        Examined = Math.Max(consumed, examined);
        if (_head is null)
        {
            return null;
        }

        if (consumed == End && _readOfTail == 0)
        {
            return DropAll();
        }

        FileSegment first = _head;
        FileSegment? last = null;
        FileSegment segment = first;
        while (consumed >= segment.RunningIndex + segment.End && segment != _tail)
        {
            last = segment;
            segment = segment.NextSegment!;
        }

        _head = segment;
        _headIndex = (int)(consumed - segment.RunningIndex);
        if (last is null)
        {
            return null;
        }

        last.NextSegment = null;
        return AddSpares(first);
    }

    /// <summary>Counts bytes as read and consumed that went to memory of somebody else's. The chain is empty, and no read is under way. Under the lock.</summary>
    internal FileSegment? Skip(long bytes)
    {
        Debug.Assert(Length == 0 && _readHead is null);
        FileSegment? dropped = _head is null ? null : DropAll();
        Start = Examined = End += bytes;
        return dropped;
    }

    /// <summary>
    /// Lets go of everything; what was not consumed counts as not read. No read is under way. Under the lock.
    /// </summary>
    /// <param name="isOut">
    /// The caller has a buffer: whoever got its segments next would share them with the caller. They wait for <see cref="TakeOut"/>, or are left to the garbage collector.
    /// </param>
    internal FileSegment? Release(bool isOut)
    {
        Debug.Assert(_readHead is null && _readOfTail == 0);
        FileSegment? released = _spares;
        if (isOut)
        {
            _out = _head;
        }
        else if (_tail is { } tail)
        {
            tail.NextSegment = released;
            released = _head;
        }

        _head = _tail = _spares = _lastSpare = null;
        _spareCount = _headIndex = 0;
        End = Start;
        return released;
    }

    /// <summary>The caller has come back with the buffer that was out at <see cref="Release"/>. Under the lock.</summary>
    internal FileSegment? TakeOut()
    {
        FileSegment? segments = _out;
        _out = null;
        return segments;
    }

    private int AddForRead(FileOperation operation, FileSegment segment, long bytes)
    {
        segment.NextSegment = null;
        if (_readTail is null)
        {
            _readHead = segment;
        }
        else
        {
            _readTail.NextSegment = segment;
        }

        _readTail = segment;
        _readCount++;
        int length = (int)Math.Min(bytes, segment.Capacity);
        operation.Add(segment, 0, length);
        return length;
    }

    private FileSegment? DropAll()
    {
        FileSegment first = _head!;
        _head = _tail = null;
        _headIndex = 0;
        return AddSpares(first);
    }

    /// <summary>Keeps of a list what the next read can use, and returns the rest. A smaller segment, of the end of the file, is not worth a call of its own later.</summary>
    private FileSegment? AddSpares(FileSegment? list)
    {
        FileSegment? last = null;
        FileSegment? rest = list;
        int count = _spareCount;
        while (rest is not null && count < _maxSpares && (_pool is not null || rest.Capacity == _segmentSize))
        {
            last = rest;
            rest = rest.NextSegment;
            count++;
        }

        if (last is not null)
        {
            last.NextSegment = null;
            if (_spareCount == 0)
            {
                _spares = list;
            }
            else
            {
                _lastSpare!.NextSegment = list;
            }

            _lastSpare = last;
            _spareCount = count;
        }

        return rest;
    }
}
