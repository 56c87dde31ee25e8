using System.Buffers;
using System.Diagnostics;
using Pipelines.File.Backends;

namespace Pipelines.File.Buffers;

/// <summary>
/// The bytes that a reader has read and its caller has not consumed, as a chain of segments; and the spare ones. A part of <see cref="ReadState"/>, and no object of its own.
/// </summary>
/// <remarks>
/// The reader's lock guards everything. The segments of the read under way are the operation's: from <see cref="BeginRead"/> to <see cref="EndRead"/> they, and the rest of the
/// tail's memory, are neither moved nor reused. What a method returns is a list of segments for the caller to give back to the pool without the lock, as that may run
/// the code of a caller's memory pool.
/// </remarks>
internal struct ReadChain
{
    /// <summary>The most segments that one read fills.</summary>
    private const int MaxSegmentsPerRead = 128;

    /// <summary>Where a read fills one segment only: the room, bytes, that makes it go on in the segment before.</summary>
    private const int MinRoomOfOnly = 2 * 1024;

    private readonly int _segmentSize;
    private readonly byte _maxSegments;

    // After the release what the caller had then, without a tail.
    private FileSegment? _head;
    private FileSegment? _tail;

    // How much of the tail the read under way may fill, bytes.
    private int _readOfTail;

    // Consumed or unused, and kept for the next read, which fills no more than these: segments of the full size.
    private FileSegment? _spares;
    private byte _spareCount;

    /// <param name="segmentSize">Bytes of a segment.</param>
    /// <param name="maxSegments">How many segments one read fills.</param>
    internal ReadChain(int segmentSize, int maxSegments)
    {
        _segmentSize = segmentSize;
        _maxSegments = (byte)Math.Min(maxSegments, MaxSegmentsPerRead);
    }

    /// <summary>Bytes consumed since the beginning.</summary>
    internal long Start { get; private set; }

    /// <summary>Bytes read since the beginning.</summary>
    internal long End { get; private set; }

    internal readonly long Length => End - Start;

    /// <summary>Whether there are bytes that the caller has not looked at.</summary>
    internal bool HasUnexamined { get; private set; }

    internal readonly ReadOnlySequence<byte> Sequence
        => End == Start ? default : new ReadOnlySequence<byte>(_head!, (int)(Start - _head!.RunningIndex), _tail!, _tail!.End);

    /// <summary>
    /// Gives the operation the memory that is here for up to <paramref name="bytes"/> bytes: the rest of the tail, then spare segments. The others it gets by
    /// <see cref="RentForRead"/>. Under the lock.
    /// </summary>
    internal void BeginRead(FileOperation operation, long bytes)
    {
        Debug.Assert(_readOfTail == 0 && bytes > 0);

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
            int length = (int)Math.Min(bytes, spare.Capacity);
            operation.AddToFill(spare, length);
            bytes -= length;
        }

        operation.Unrented = bytes;
    }

    /// <summary>
    /// Rents memory for the bytes that <see cref="BeginRead"/> found none for. Called without the lock by whoever has the operation. Where a caller's pool throws, the
    /// owner ends the read with <see cref="EndRead"/>.
    /// </summary>
    /// <param name="operation">The read.</param>
    /// <param name="pool">Where memory comes from; <see langword="null"/> for the library's own pool.</param>
    /// <param name="alignment">With the library's own pool, where reads had better begin: at multiples of this, file offset in bytes.</param>
    /// <param name="owner">Whose segments they are from here on, for <see cref="IndexOf"/>.</param>
    internal readonly void RentForRead(FileOperation operation, MemoryPool<byte>? pool, int alignment, object owner)
    {
        while (operation.Unrented > 0 && operation.BufferCount < _maxSegments)
        {
            int size = (int)Math.Min(operation.Unrented, _segmentSize);

            // Where the read ends at a boundary the segment does, too, as the next read would go on in it, and cross the next boundary.
            bool isExact = alignment > 1 && (operation.Offset + operation.Length + size) % alignment == 0;
            FileSegment segment = pool is null
                ? SegmentPool.Shared.Rent(isExact ? size : Math.Min(SegmentPool.SizeOf(size), _segmentSize))
                : SegmentPool.Shared.Rent(_segmentSize, pool);
            segment.Chain = owner;
            int length = (int)Math.Min(operation.Unrented, segment.Capacity);
            operation.AddToFill(segment, length);
            operation.Unrented -= length;
        }
    }

    /// <summary>The read is over, and has filled the first <paramref name="filled"/> bytes of its memory. Under the lock.</summary>
    internal FileSegment? EndRead(FileOperation operation, long filled)
    {
        End += filled;
        HasUnexamined |= filled > 0;
        int ofTail = (int)Math.Min(filled, _readOfTail);
        if (ofTail > 0)
        {
            _tail!.SetEnd(_tail.End + ofTail);
            filled -= ofTail;
        }

        _readOfTail = 0;
        FileSegment? first = operation.TakeSegments();
        FileSegment? segment = first;
        FileSegment? last = null;
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
        }

        if (last is not null)
        {
            last.NextSegment = null;
            if (_tail is null)
            {
                _head = first;
            }
            else
            {
                _tail.NextSegment = first;
            }

            _tail = last;
        }

        return AddSpares(segment);
    }

    /// <summary>The number of bytes since the beginning that a position of the caller's stands for. Under the lock.</summary>
    /// <exception cref="InvalidOperationException">The position is not one in this chain, or everything was consumed already.</exception>
    internal readonly long IndexOf(SequencePosition position, object owner)
    {
        if (Length > 0 && position.GetObject() is FileSegment segment && segment.Chain == owner)
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
        HasUnexamined = End > Math.Max(consumed, examined);
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
        Debug.Assert(Length == 0 && _readOfTail == 0);
        FileSegment? dropped = _head is null ? null : DropAll();
        Start = End += bytes;
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
        Debug.Assert(_readOfTail == 0);
        FileSegment? released = _spares;
        if (!isOut && _tail is { } tail)
        {
            tail.NextSegment = released;
            released = _head;
            _head = null;
        }

        _tail = _spares = null;
        _spareCount = 0;
        End = Start;
        HasUnexamined = false;
        return released;
    }

    /// <summary>The caller has come back with the buffer that was out at <see cref="Release"/>. Under the lock.</summary>
    internal FileSegment? TakeOut()
    {
        if (_tail is not null)
        {
            // Not released yet, as a read is still under way.
            return null;
        }

        FileSegment? segments = _head;
        _head = null;
        return segments;
    }

    private FileSegment? DropAll()
    {
        FileSegment first = _head!;
        _head = _tail = null;
        return AddSpares(first);
    }

    /// <summary>Keeps of a list what the next read can use, and returns the rest. A smaller segment, of the end of the file, is not worth a call of its own later.</summary>
    private FileSegment? AddSpares(FileSegment? list)
    {
        FileSegment? last = null;
        FileSegment? rest = list;
        byte count = _spareCount;
        int maxCount = Math.Clamp(ReadState.BytesPerRead / _segmentSize, 1, _maxSegments);
        while (rest is not null && count < maxCount && (rest.PooledSize == 0 || rest.Capacity == _segmentSize))
        {
            last = rest;
            rest = rest.NextSegment;
            count++;
        }

        if (last is not null)
        {
            last.NextSegment = _spares;
            _spares = list;
            _spareCount = count;
        }

        return rest;
    }
}
