using System.Buffers;
using System.Diagnostics;
using System.Numerics;
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
    /// <summary>The most bytes of a flush that is kept whole, where flushes are.</summary>
    internal const int MaxWholeFlush = 64 * 1024;

    private readonly MemoryPool<byte>? _pool;
    private readonly int _segmentSize;
    private readonly int _largestSegment;
    private readonly int _maxSegmentsPerWrite;
    private readonly bool _keepsFlushesWhole;

    // Guarded by the lock, as is every link between segments.
    private FileSegment? _head;

    // Owned by the caller, who alone appends: the segment that takes bytes, how many of its bytes are taken, and whether the caller has the memory behind those.
    private FileSegment? _tail;
    private int _tailEnd;
    private bool _isRoomOut;

    /// <param name="pool">Where memory comes from; <see langword="null"/> for the library's own pool.</param>
    /// <param name="segmentSize">Bytes of a segment.</param>
    /// <param name="maxSegmentsPerWrite">How many segments one write takes.</param>
    /// <param name="largestSegment">Bytes up to which segments of the library's own pool grow with what waits to be written; 0: they do not.</param>
    /// <param name="keepsFlushesWhole">
    /// Whether the bytes of a flush, <see cref="MaxWholeFlush"/> at most, go out in one write, as a file that others append to needs it. They lie within one segment then, and a write
    /// takes whole segments.
    /// </param>
    internal WriteQueue(MemoryPool<byte>? pool, int segmentSize, int maxSegmentsPerWrite, int largestSegment = 0, bool keepsFlushesWhole = false)
    {
        _pool = pool;
        _keepsFlushesWhole = keepsFlushesWhole;
        if (keepsFlushesWhole)
        {
            segmentSize = Math.Max(segmentSize, MaxWholeFlush);
        }

        // It is a minimum, and a smaller piece of the own pool would leave the most of its memory unused.
        _segmentSize = pool is null ? Math.Max(segmentSize, SegmentPool.MinSize) : segmentSize;
        _largestSegment = pool is null ? largestSegment : 0;
        _maxSegmentsPerWrite = maxSegmentsPerWrite;
    }

    /// <summary>Bytes that the system has. Guarded by the lock.</summary>
    internal long Written { get; private set; }

    /// <summary>Bytes that were handed over. Guarded by the lock.</summary>
    internal long Flushed { get; private set; }

    /// <summary>Bytes that the caller has advanced over. Owned by the caller.</summary>
    internal long Advanced { get; private set; }

    /// <summary>
    /// The memory that takes the next bytes. Called by the caller. <see cref="ReleaseAll"/> may come meanwhile: it leaves that memory alone where the writer,
    /// <paramref name="isCompleted"/> says, was not completed yet when the caller had announced itself; else it may be gone already and is not looked at.
    /// </summary>
    internal bool TryGetRoom(int sizeHint, ref readonly bool isCompleted, out Memory<byte> room)
    {
        bool wasOut = _isRoomOut;
        Volatile.Write(ref _isRoomOut, true);
        if (!Volatile.Read(in isCompleted) && _tail is { } tail && sizeHint >= 0)
        {
            // Copies, as ReleaseAll may clear both meanwhile.
            Memory<byte> buffer = tail.Buffer;
            int start = _tailEnd;
            if (buffer.Length - start is int length && length > 0 && length >= sizeHint)
            {
                room = buffer[start..];
                return true;
            }
        }

        Volatile.Write(ref _isRoomOut, wasOut);
        room = default;
        return false;
    }

    /// <summary>Takes bytes that the caller has put into its room. <see langword="false"/>: there is not so much <paramref name="room"/>. Called by the caller.</summary>
    internal bool TryAdvance(int bytes, out int room)
    {
        room = _tail is { } tail ? tail.Capacity - _tailEnd : 0;
        if ((uint)bytes > (uint)room)
        {
            return false;
        }

        _tailEnd += bytes;
        Advanced += bytes;
        Volatile.Write(ref _isRoomOut, false);
        return true;
    }

    /// <summary>A segment with room for at least <paramref name="sizeHint"/> bytes. Without the lock: the caller's memory pool may be asked.</summary>
    /// <param name="sizeHint">Bytes that are wanted, or 0.</param>
    /// <param name="moved">Bytes of the open flush that the segment begins with, copied from the tail: for <see cref="Append"/>.</param>
    internal FileSegment Rent(int sizeHint, out int moved)
    {
        FileSegment? tail = _tail;
        int tailEnd = _tailEnd;
        moved = _keepsFlushesWhole && tail is not null && Advanced - Flushed is long open && open <= Math.Min(MaxWholeFlush, tailEnd) ? (int)open : 0;
        int wanted = moved == 0 ? sizeHint : checked(moved + Math.Max(1, sizeHint));
        int size = Math.Max(Math.Max(_segmentSize, wanted), GrownSize());
        FileSegment segment = _pool is null || wanted > _pool.MaxBufferSize ? SegmentPool.Shared.Rent(size) : SegmentPool.Shared.Rent(size, _pool);
        if (moved > 0)
        {
            tail!.Buffer.Span.Slice(tailEnd - moved, moved).CopyTo(segment.Buffer.Span);
        }

        return segment;
    }

    /// <summary>
    /// Appends a segment, which the caller has from here on, and takes the bytes that it begins with away from the tail. Called by the caller, under the lock.
    /// </summary>
    internal FileSegment? Append(FileSegment segment, int moved)
    {
        segment.Chain = this;
        segment.SetRunningIndex(Advanced - moved);
        if (_tail is null)
        {
            _head = segment;
        }
        else
        {
            _tail.SetEnd(_tailEnd - moved);
            _tail.NextSegment = segment;
        }

        _tail = segment;
        _tailEnd = moved;
        _isRoomOut = true;
        return TakeBefore(Written);
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
            int available = (int)Math.Min(segment == _tail ? int.MaxValue : segment.End, Flushed - segment.RunningIndex);
            int length = (int)Math.Min(available - start, _keepsFlushesWhole ? long.MaxValue : end - position);
            if (length > end - position && operation.BufferCount > 0)
            {
                // Whole, with the next write.
                break;
            }

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
            if (!Volatile.Read(ref _isRoomOut))
            {
                tail.NextSegment = list;
                list = tail;
            }
        }

        _head = _tail = null;
        _tailEnd = 0;
        return list;
    }

    /// <summary>
    /// As much as waits to be written, so that a writer whose bytes go out as they come keeps small segments. <see cref="Written"/> may be moving, which changes the size only.
    /// </summary>
    private int GrownSize()
        => _largestSegment > 0 && Advanced - Written is long waiting and > 0 ? 1 << BitOperations.Log2((ulong)Math.Min(waiting, _largestSegment)) : 0;

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
