using System.Buffers;
using System.Diagnostics;
using Pipelines.File.Backends;

namespace Pipelines.File.Buffers;

/// <summary>
/// The bytes of a writer on their way to the file, as a chain of segments. Three marks divide it, all counted from the beginning:
/// <see cref="Written"/> ≤ <see cref="Flushed"/> ≤ <see cref="Advanced"/>. What lies before Written is gone; from there to Flushed it belongs to the drain,
/// which the writer's lock guards; what lies behind Flushed, and the room behind Advanced, belongs to the writer's caller, who needs no lock for it.
/// </summary>
/// <remarks>What a method returns is a list of segments for the caller to give back to the pool without the lock, as that may run the code of a caller's memory pool.</remarks>
internal sealed class WriteQueue
{
    private readonly MemoryPool<byte>? _pool;
    private readonly int _segmentSize;
    private readonly int _maxSegmentsPerWrite;

    // Guarded by the lock, as is every link between segments.
    private FileSegment? _head;

    // Owned by the caller, who alone appends: the segment that takes bytes, how many of its bytes are taken, and the thread that has got the memory behind those, or 0.
    private FileSegment? _tail;
    private int _tailEnd;
    private int _roomHolder;

    internal WriteQueue(MemoryPool<byte>? pool, int segmentSize, int maxSegmentsPerWrite)
    {
        _pool = pool;

        // It is a minimum, and a smaller piece of the own pool would leave the most of its memory unused.
        _segmentSize = pool is null ? Math.Max(segmentSize, SegmentPool.MinSize) : segmentSize;
        _maxSegmentsPerWrite = maxSegmentsPerWrite;
    }

    /// <summary>Bytes that the system has. Guarded by the lock.</summary>
    internal long Written { get; private set; }

    /// <summary>Bytes that were handed over. Guarded by the lock.</summary>
    internal long Flushed { get; private set; }

    /// <summary>Bytes that the caller has advanced over. Owned by the caller.</summary>
    internal long Advanced { get; private set; }

    /// <summary>
    /// The memory that takes the next bytes. Called by the caller, who asks afterwards whether the writer is completed: <see cref="ReleaseAll"/> may come meanwhile.
    /// </summary>
    internal bool TryGetRoom(int sizeHint, out Memory<byte> room)
    {
        if (_tail is { } tail && sizeHint >= 0)
        {
            // Copies, as ReleaseAll may clear both meanwhile.
            Memory<byte> buffer = tail.Buffer;
            int start = _tailEnd;
            if (buffer.Length - start is int length && length > 0 && length >= sizeHint)
            {
                Volatile.Write(ref _roomHolder, Environment.CurrentManagedThreadId);
                room = buffer[start..];
                return true;
            }
        }

        room = default;
        return false;
    }

    /// <summary>Takes bytes that the caller has put into its room. Called by the caller.</summary>
    /// <exception cref="ArgumentOutOfRangeException">There are not so many.</exception>
    internal void Advance(int bytes)
    {
        if ((uint)bytes > (uint)(_tail is { } tail ? tail.Capacity - _tailEnd : 0))
        {
            throw new ArgumentOutOfRangeException(nameof(bytes), bytes, "More bytes than the memory that GetMemory returned.");
        }

        _tailEnd += bytes;
        Advanced += bytes;
        Volatile.Write(ref _roomHolder, 0);
    }

    /// <summary>A segment with room for at least <paramref name="sizeHint"/> bytes. Without the lock: the caller's memory pool may be asked.</summary>
    internal FileSegment Rent(int sizeHint)
    {
        int size = Math.Max(_segmentSize, sizeHint);
        return _pool is null || sizeHint > _pool.MaxBufferSize ? SegmentPool.Shared.Rent(size) : SegmentPool.Shared.Rent(size, _pool);
    }

    /// <summary>Appends a segment, which the caller has from here on. Called by the caller, under the lock.</summary>
    internal FileSegment? Append(FileSegment segment)
    {
        segment.Chain = this;
        segment.SetRunningIndex(Advanced);
        if (_tail is null)
        {
            _head = segment;
        }
        else
        {
            _tail.SetEnd(_tailEnd);
            _tail.NextSegment = segment;
        }

        _tail = segment;
        _tailEnd = 0;
        _roomHolder = Environment.CurrentManagedThreadId;
        return TakeBefore(Written);
    }

    /// <summary>
    /// The writer is being completed, on this thread. The one that got memory last gives that up by it: the memory goes back to a caller's pool, which may count its pieces.
    /// Memory of the own pool is shared by the whole process, and stays away from it also then.
    /// </summary>
    internal void OnCompleting()
    {
        if (_pool is not null && Volatile.Read(ref _roomHolder) == Environment.CurrentManagedThreadId)
        {
            Volatile.Write(ref _roomHolder, 0);
        }
    }

    /// <summary>Hands everything over that the caller has advanced over. Called by the caller, under the lock.</summary>
    internal void Flush() => Flushed = Advanced;

    /// <summary>Gives the operation the next flushed bytes, at most <paramref name="maxBytes"/>. Under the lock; they stay where they are until <see cref="OnWritten"/>.</summary>
    internal void BeginWrite(FileOperation operation, long maxBytes)
    {
        Debug.Assert(Flushed > Written);
        long position = Written;
        long end = Math.Min(Flushed, Written + maxBytes);
        for (FileSegment segment = _head!; position < end && operation.BufferCount < _maxSegmentsPerWrite; segment = segment.NextSegment!)
        {
            int start = (int)(position - segment.RunningIndex);
            int available = segment == _tail ? (int)(Flushed - segment.RunningIndex) : segment.End;
            int length = (int)Math.Min(available - start, end - position);
            if (length > 0)
            {
                operation.Add(segment, start, length);
                position += length;
            }
        }
    }

    /// <summary>The system has taken that many more bytes. Under the lock.</summary>
    internal FileSegment? OnWritten(long bytes)
    {
        Written += bytes;
        return TakeBefore(Written);
    }

    /// <summary>Moves all marks over bytes that went to the file some other way. Everything was written. Called by the caller, under the lock.</summary>
    internal FileSegment? Skip(long bytes)
    {
        Debug.Assert(Written == Advanced);
        Written += bytes;
        Flushed = Advanced = Written;
        return ReleaseAll();
    }

    /// <summary>After a failure: drops what was handed over and can not be written any more. The caller's tail stays. Under the lock; no write is under way.</summary>
    internal FileSegment? DropFlushed() => TakeBefore(Flushed);

    /// <summary>
    /// Lets go of every segment. No write is under way. Under the lock, and the writer is completed, or its caller waits. Where the caller has memory, that is left to the
    /// garbage collector: whoever got it next would share it with the caller.
    /// </summary>
    internal FileSegment? ReleaseAll()
    {
        FileSegment? list = TakeBefore(long.MaxValue);
        if (_head is { } tail)
        {
            // The caller's thread sets the flag before it looks whether the writer is completed, without a fence of its own, as that is done for every few bytes.
            Interlocked.MemoryBarrierProcessWide();
            if (Volatile.Read(ref _roomHolder) == 0)
            {
                tail.NextSegment = list;
                list = tail;
            }
        }

        _head = _tail = null;
        _tailEnd = 0;
        return list;
    }

    /// <summary>Takes out the segments, but for the tail, that end before <paramref name="position"/>.</summary>
    private FileSegment? TakeBefore(long position)
    {
        FileSegment? first = _head;
        FileSegment? last = null;
        while (_head is { } segment && segment != _tail && segment.RunningIndex + segment.End <= position)
        {
            last = segment;
            _head = segment.NextSegment;
        }

        if (last is null)
        {
            return null;
        }

        last.NextSegment = null;
        return first;
    }
}
