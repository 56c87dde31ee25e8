using System.Buffers;
using System.Diagnostics;
using Pipelines.File.Backends;

namespace Pipelines.File.Buffers;

/// <summary>
/// The bytes of a writer on their way to the file, as a chain of segments. Three marks divide it, all counted from the beginning:
/// <see cref="Written"/> ≤ <see cref="Flushed"/> ≤ <see cref="Advanced"/>. What lies before Written is gone; from there to Flushed it belongs to the drain,
/// which the writer's lock guards; what lies behind Flushed, and the room behind Advanced, belongs to the writer's caller, who needs no lock for it.
/// </summary>
internal sealed class WriteQueue
{
    private readonly MemoryPool<byte>? _pool;
    private readonly int _segmentSize;
    private readonly int _maxSegmentsPerWrite;

    // Guarded by the lock, as is every link between segments.
    private FileSegment? _head;

    // Owned by the caller, who alone appends: the segment that takes bytes, and how many of its bytes are taken.
    private FileSegment? _tail;
    private int _tailEnd;

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

    internal bool HasRoom(int sizeHint)
        => _tail is { } tail && tail.Capacity - _tailEnd is int room && room > 0 && room >= sizeHint;

    /// <summary>The memory that takes the next bytes. Called by the caller, after <see cref="HasRoom"/> or <see cref="Append"/>.</summary>
    internal Memory<byte> Room => _tail!.Buffer[_tailEnd..];

    /// <summary>Takes bytes that the caller has put into <see cref="Room"/>. Called by the caller.</summary>
    /// <exception cref="ArgumentOutOfRangeException">There are not so many.</exception>
    internal void Advance(int bytes)
    {
        if ((uint)bytes > (uint)(_tail is null ? 0 : _tail.Capacity - _tailEnd))
        {
            throw new ArgumentOutOfRangeException(nameof(bytes), bytes, "More bytes than the memory that GetMemory returned.");
        }

        _tailEnd += bytes;
        Advanced += bytes;
    }

    /// <summary>Appends a segment with room for at least <paramref name="sizeHint"/> bytes. Called by the caller, under the lock.</summary>
    internal void Append(int sizeHint)
    {
        int size = Math.Max(_segmentSize, sizeHint);
        FileSegment segment = _pool is null || sizeHint > _pool.MaxBufferSize
            ? SegmentPool.Shared.Rent(size)
            : SegmentPool.Shared.Rent(size, _pool);
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
        ReleaseWritten();
    }

    /// <summary>Hands everything over that the caller has advanced over. Called by the caller, under the lock.</summary>
    internal void Flush() => Flushed = Advanced;

    /// <summary>Gives the operation the next flushed bytes, at most <paramref name="maxBytes"/>. Under the lock; they stay where they are until <see cref="OnWritten"/>.</summary>
    internal void Lend(FileOperation operation, long maxBytes)
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
    internal void OnWritten(long bytes)
    {
        Written += bytes;
        ReleaseWritten();
    }

    /// <summary>Moves all marks over bytes that went to the file some other way. Everything was written. Called by the caller, under the lock.</summary>
    internal void Skip(long bytes)
    {
        Debug.Assert(Written == Advanced);
        ReleaseAll();
        Written += bytes;
        Flushed = Advanced = Written;
    }

    /// <summary>Gives every segment back. Nothing is lent, and the caller is done. Under the lock.</summary>
    internal void ReleaseAll()
    {
        while (_head is { } segment)
        {
            _head = segment.NextSegment;
            SegmentPool.Shared.Return(segment);
        }

        _tail = null;
        _tailEnd = 0;
    }

    /// <summary>After a failure: drops what was handed over and can not be written any more. The caller's tail stays. Under the lock; nothing is lent.</summary>
    internal void DropFlushed()
    {
        while (_head is { } segment && segment != _tail && segment.RunningIndex + segment.End <= Flushed)
        {
            _head = segment.NextSegment;
            SegmentPool.Shared.Return(segment);
        }
    }

    private void ReleaseWritten()
    {
        while (_head is { } segment && segment != _tail && segment.RunningIndex + segment.End <= Written)
        {
            _head = segment.NextSegment;
            SegmentPool.Shared.Return(segment);
        }
    }
}
