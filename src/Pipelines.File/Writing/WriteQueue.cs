using Pipelines.File.IO;
using Pipelines.File.Memory;

namespace Pipelines.File.Writing;

/// <summary>
/// The bytes of a writer on their way to the file, as a chain of segments. Three marks divide it, all counted from the beginning:
/// <see cref="Written"/> ≤ <see cref="Flushed"/> ≤ <see cref="Advanced"/>. What lies before Written is gone; from there to Flushed it
/// belongs to the write loop, which the writer's lock guards; what lies behind Flushed, and the room behind Advanced, belongs to the
/// writer's caller, who needs no lock for it. Behind the segments may lie memory that is borrowed from the caller, who waits for it.
/// </summary>
/// <remarks>
/// Methods that end in Locked are called under the writer's lock. What one returns is a list of segments for the caller to give back to the
/// pool without the lock, as that may run the code of a caller's memory pool.
/// </remarks>
internal sealed class WriteQueue
{
    /// <summary>The most bytes of a flush that is kept whole, where flushes are.</summary>
    internal const int MaxWholeFlush = 64 * 1024;

    /// <summary>
    /// The most bytes of one write that several flushes of an appending writer share: no other process's line is joined to more than that
    /// where this one is killed within it.
    /// </summary>
    private const int MaxSharedAppend = 4 * 1024;

    /// <summary>The longest piece of memory, bytes: an array, less what a segment and an open flush need of it.</summary>
    internal const int MaxRoom = 0x7FFF_0000 - MaxWholeFlush;

    /// <summary>The most bytes of borrowed memory in one write. A call that is canceled waits for the write under way.</summary>
    private const int BorrowedBytesPerWrite = 8 * 1024 * 1024;

    private readonly OpenedFile _file;
    private readonly MemoryPool<byte>? _pool;

    // Bytes of a segment at least, and bytes up to which segments of the library's own pool grow with what waits to be written; 0: they do
    // not.
    private readonly int _segmentSize;
    private readonly int _largestSegment;
    private readonly int _maxSegmentsPerWrite;

    // More than 1 for direct I/O, bytes: a write that is not the last one ends at a multiple of this, segments are as long, and a caller's
    // memory begins at a multiple of DirectFile.LeastBlock.
    private readonly int _block;

    // Where the flushes end that are not written, where flushes are kept whole. Guarded by the lock.
    private readonly Queue<long>? _flushEnds;

    // Guarded by the lock, as is every link between segments.
    private FileSegment? _head;

    // Owned by the caller, who alone appends: the segment that takes bytes, how many of its bytes are taken, and whether the caller has the
    // memory behind those.
    private FileSegment? _tail;
    private int _tailEnd;
    private bool _callerHasRoom;
    private long _advanced;

    // What is borrowed and not written, the position of its first byte, and its address if it is one piece. Guarded by the lock.
    private ReadOnlySequence<byte> _borrowed;
    private long _borrowedStart;
    private nint _borrowedAddress;

    internal WriteQueue(OpenedFile file, FilePipeWriterOptions options)
    {
        _file = file;
        _pool = options.Pool;
        _maxSegmentsPerWrite = file.MaxBuffersPerOperation;
        _largestSegment = _pool is null ? file.LargestWriteSegment : 0;
        _block = file.IsDirect ? file.ReadGranularity : 1;

        // A file that others write to as well needs the bytes of a flush in one write. Where a write takes one segment only they lie within
        // one.
        bool keepsFlushesWhole = file.Appends || file.SharesPosition;
        _flushEnds = keepsFlushesWhole ? new Queue<long>() : null;

        // Small segments would make small writes where a write takes one only, and leave the most of a smaller piece of the own pool
        // unused.
        int least = keepsFlushesWhole || _maxSegmentsPerWrite == 1 || (file.IsDirect && _pool is null) ? MaxWholeFlush : _pool is null
            ? SegmentPool.MinSize : 1;
        _segmentSize = Math.Max(options.MinimumBufferSize, least);
    }

    /// <summary>Bytes that the system has. Guarded by the lock.</summary>
    internal long Written { get; private set; }

    /// <summary>Bytes that were handed over. Guarded by the lock.</summary>
    internal long Flushed { get; private set; }

    /// <summary>
    /// Bytes that the caller has advanced over. Owned by the caller, and published: whoever completes the writer sees the bytes before it.
    /// </summary>
    internal long Advanced
    {
        get => Volatile.Read(ref _advanced);
        private set => Volatile.Write(ref _advanced, value);
    }

    /// <summary>
    /// The memory that takes the next bytes. Called by the caller. <see cref="ReleaseAllLocked"/> may come meanwhile: it leaves that memory
    /// alone where the writer,
    /// <paramref name="isCompleted"/> says, was not completed yet when the caller had announced itself; else it may be gone already and is
    /// not looked at.
    /// </summary>
    internal bool TryGetRoom(int sizeHint, ref readonly bool isCompleted, out Memory<byte> room)
    {
        bool wasOut = _callerHasRoom;
        Volatile.Write(ref _callerHasRoom, true);
        if (!Volatile.Read(in isCompleted) && _tail is { } tail && sizeHint >= 0)
        {
            // Copies, as ReleaseAllLocked may clear both meanwhile.
            Memory<byte> buffer = tail.Buffer;
            int start = _tailEnd;
            if (buffer.Length - start is int length && length > 0 && length >= sizeHint)
            {
                room = buffer[start..];
                return true;
            }
        }

        Volatile.Write(ref _callerHasRoom, wasOut);
        room = default;
        return false;
    }

    /// <summary>
    /// Takes bytes that the caller has put into its room. <see langword="false"/>: there is not so much <paramref name="room"/>. Called by
    /// the caller.
    /// </summary>
    internal bool TryAdvance(int bytes, out int room)
    {
        room = _tail is { } tail ? tail.Capacity - _tailEnd : 0;
        if ((uint)bytes > (uint)room)
        {
            return false;
        }

        _tailEnd += bytes;
        Advanced = _advanced + bytes;
        Volatile.Write(ref _callerHasRoom, false);
        return true;
    }

    /// <summary>
    /// A pinned segment with room for at least <paramref name="sizeHint"/> bytes. By the caller, without the lock: the caller's memory pool
    /// may be asked.
    /// </summary>
    /// <param name="sizeHint">Bytes that are wanted, or 0; <see cref="MaxRoom"/> at most.</param>
    /// <param name="moved">Bytes of the open flush that the segment is to begin with: for <see cref="AppendLocked"/>.</param>
    internal FileSegment Rent(int sizeHint, out int moved)
    {
        moved = _flushEnds is not null && _maxSegmentsPerWrite == 1 && Advanced - Flushed is long open
            && open <= Math.Min(MaxWholeFlush, _tailEnd) ? (int)open : 0;
        int wanted = moved == 0 ? sizeHint : moved + Math.Max(1, sizeHint);
        int size = Math.Max(Math.Max(_segmentSize, wanted), GrownSize());
        FileSegment segment = _pool is null || wanted > _pool.MaxBufferSize
            ? SegmentPool.Shared.Rent((size + _block - 1) / _block * _block)
            : SegmentPool.Shared.Rent(size, _pool);
        if (_block > 1)
        {
            DirectFile.RequireWhole(segment);
            return segment;
        }

        try
        {
            segment.Pin();
            return segment;
        }
        catch
        {
            _ = SegmentPool.Shared.Return(segment);
            throw;
        }
    }

    /// <summary>
    /// Appends a segment, which the caller has from here on, and moves the bytes that it begins with there from the tail. Called by the
    /// caller; the writer is not completed.
    /// </summary>
    internal FileSegment? AppendLocked(FileSegment segment, int moved)
    {
        segment.Chain = this;
        segment.SetRunningIndex(Advanced - moved);
        if (_tail is null)
        {
            _head = segment;
        }
        else
        {
            _tail.PinnedSpan.Slice(_tailEnd - moved, moved).CopyTo(segment.PinnedSpan);
            _tail.SetEnd(_tailEnd - moved);
            _tail.NextSegment = segment;
        }

        _tail = segment;
        _tailEnd = moved;
        _callerHasRoom = true;
        return TakeBefore(Written);
    }

    /// <summary>Hands everything over that the caller has advanced over. Called by the caller.</summary>
    internal void FlushLocked()
    {
        Flushed = Advanced;
        _flushEnds?.Enqueue(Flushed);
    }

    /// <summary>
    /// Hands memory over that stays the caller's, behind everything else, which is handed over already. It is in use until
    /// <see cref="EndBorrowingLocked"/>.
    /// </summary>
    internal unsafe void BorrowLocked(ReadOnlySequence<byte> memory, MemoryHandle pin)
    {
        Debug.Assert(Flushed == Advanced && _borrowed.IsEmpty);
        _borrowed = memory;
        _borrowedStart = Flushed;
        _borrowedAddress = (nint)pin.Pointer;
        Flushed = Advanced = Flushed + memory.Length;
    }

    /// <summary>The queue does not need the borrowed memory any more. Bytes of it that are not written were not taken. No write is under
    /// way.</summary>
    internal void EndBorrowingLocked()
    {
        Flushed = Advanced = _borrowedStart;

        // The room of the tail goes on behind what was borrowed.
        _tail?.SetRunningIndex(_borrowedStart - _tailEnd);
        _borrowed = default;
        _borrowedAddress = 0;
    }

    /// <summary>
    /// Gives the request the next flushed bytes, or what is borrowed behind them. They stay where they are until
    /// <see cref="TakeWrittenLocked"/>.
    /// </summary>
    internal void BeginWriteLocked(FileRequest request)
    {
        Debug.Assert(Flushed > Written);
        long ownEnd = _borrowed.IsEmpty ? Flushed : _borrowedStart;
        if (Written == ownEnd)
        {
            AddBorrowed(request, MostOf(request, BorrowedBytesPerWrite));
            return;
        }

        long position = Written;
        long end = EndOfWrite(ownEnd, MostOf(request, _file.BytesPerWrite));
        for (FileSegment segment = _head!; position < end && request.BufferCount < _maxSegmentsPerWrite; segment = segment.NextSegment!)
        {
            int start = (int)(position - segment.RunningIndex);
            int available = (int)Math.Min(segment == _tail ? int.MaxValue : segment.End, ownEnd - segment.RunningIndex);
            int length = (int)Math.Min(available - start, end - position);
            if (length > 0)
            {
                request.Add(segment, start, length);
                position += length;
            }
        }
    }

    /// <summary>The system has taken that many more bytes.</summary>
    internal void OnWrittenLocked(long bytes)
    {
        Written += bytes;
        if (!_borrowed.IsEmpty && Written > _borrowedStart)
        {
            long written = Written - _borrowedStart;
            _borrowed = _borrowed.Slice(written);
            _borrowedAddress += _borrowedAddress == 0 ? 0 : (nint)written;
            _borrowedStart = Written;
        }
    }

    /// <summary>The segments whose bytes are written. No write is under way.</summary>
    internal FileSegment? TakeWrittenLocked() => TakeBefore(Written);

    /// <summary>
    /// After a failure: drops what was handed over and can not be written any more. The caller's tail stays. No write is under way.
    /// </summary>
    internal FileSegment? DropFlushedLocked()
    {
        _flushEnds?.Clear();
        return TakeBefore(Flushed);
    }

    /// <summary>
    /// Lets go of every segment. No write is under way, and the writer is completed, so that the caller has no memory any more.
    /// </summary>
    /// <param name="keepsRoom">
    /// Whether the caller's memory is left to the garbage collector all the same: it may be in use where the writer was aborted, and
    /// whoever got it next would share it.
    /// </param>
    internal FileSegment? ReleaseAllLocked(bool keepsRoom)
    {
        FileSegment? list = TakeBefore(long.MaxValue);
        if (_head is { } tail)
        {
            if (keepsRoom)
            {
                // The caller's thread sets the flag before it looks whether the writer is completed, without a fence of its own, as that is
                // done for every few bytes.
                Interlocked.MemoryBarrierProcessWide();
            }

            if (!keepsRoom || !Volatile.Read(ref _callerHasRoom))
            {
                tail.NextSegment = list;
                list = tail;
            }
        }

        _head = _tail = null;
        _tailEnd = 0;
        return list;
    }

    /// <summary>How many bytes the write takes at most.</summary>
    private long MostOf(FileRequest request, long bytes) => bytes - ((request.Offset + bytes) % _block);

    /// <summary>
    /// Where a write ends that begins at <see cref="Written"/>: where flushes are kept whole, with one of them, or with several that are
    /// short together.
    /// </summary>
    private long EndOfWrite(long ownEnd, long maxBytes)
    {
        long most = Math.Min(ownEnd, Written + maxBytes);
        if (_flushEnds is null)
        {
            return most;
        }

        while (_flushEnds.TryPeek(out long written) && written <= Written)
        {
            _flushEnds.Dequeue();
        }

        long end = _flushEnds.TryPeek(out long first) ? Math.Min(first, most) : most;
        foreach (long next in _flushEnds)
        {
            if (next > most || next - Written > (_file.Appends ? MaxSharedAppend : _file.BytesPerWrite))
            {
                break;
            }

            end = next;
        }

        return end;
    }

    private void AddBorrowed(FileRequest request, long maxBytes)
    {
        foreach (ReadOnlyMemory<byte> memory in _borrowed)
        {
            if (request.BufferCount == _maxSegmentsPerWrite || request.Length == maxBytes)
            {
                break;
            }

            request.Add(memory[..(int)Math.Min(memory.Length, maxBytes - request.Length)], _borrowedAddress);
        }
    }

    /// <summary>
    /// As much as waits to be written, so that a writer whose bytes go out as they come keeps small segments. <see cref="Written"/> may be
    /// moving, which changes the size only.
    /// </summary>
    private int GrownSize()
        => _largestSegment > 0 && Advanced - Written is long waiting and > 0
            ? 1 << BitOperations.Log2((ulong)Math.Min(waiting, _largestSegment)) : 0;

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
