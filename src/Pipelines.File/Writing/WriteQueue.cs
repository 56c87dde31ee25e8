using Pipelines.File.IO;
using Pipelines.File.Memory;

namespace Pipelines.File.Writing;

/// <summary>
/// The bytes of a writer on their way to the file, as a chain of segments. Three marks divide it, all counted from the first byte of the
/// writer: <see cref="Written"/> ≤ <see cref="Flushed"/> ≤ <see cref="Advanced"/>. The bytes before Written are done. The bytes between
/// Written and Flushed belong to the write loop, and the writer's lock guards them. The bytes after Flushed, and the room after Advanced,
/// belong to the writer's caller, who needs no lock for them.
/// </summary>
/// <remarks>
/// Methods whose names end in Locked are called under the writer's lock. Methods return the segments that are no longer needed. The caller
/// returns these to the pool without the lock, because that may run the code of a caller's memory pool.
/// </remarks>
internal sealed class WriteQueue
{
    /// <summary>If flushes are kept whole: the maximum size of a flush that surely goes out in one write, bytes.</summary>
    internal const int MaxWholeFlush = 64 * 1024;

    /// <summary>
    /// If the file is appended to: the maximum size of a write that several flushes share, bytes. If this process is killed within the
    /// write, another process's line is joined to at most that many bytes of it.
    /// </summary>
    private const int MaxSharedAppend = 4 * 1024;

    /// <summary>The minimum size of a segment if a write takes one only, bytes.</summary>
    private const int LeastSingleSegment = 128 * 1024;

    /// <summary>The maximum sizeHint, bytes: the longest array, less what a segment needs.</summary>
    internal const int MaxRoom = 0x7FFF_0000 - MaxWholeFlush;

    private readonly OpenedFile _file;
    private readonly MemoryPool<byte>? _pool;

    // The minimum size of a segment, bytes.
    private readonly int _segmentSize;
    private readonly int _maxSegmentsPerWrite;

    // If flushes are kept whole: the ends of those that are not written, behind the end of the one that is being written; else null.
    // Guarded by the lock.
    private readonly Queue<long>? _flushEnds;
    private long _flushEnd;

    // The copy of a flush that is kept whole and lies in more segments than a write takes. Made by the first one.
    private FileSegment? _joined;

    // Guarded by the lock, as is every link between segments.
    private FileSegment? _head;

    // Owned by the writer's caller, who alone appends: the segment that takes bytes, how many of its bytes are taken, and whether the
    // caller holds the memory after these.
    private FileSegment? _tail;
    private int _tailEnd;
    private bool _callerHasRoom;
    private long _advanced;

    // Set once, under the lock.
    private bool _isCompleted;

    internal WriteQueue(OpenedFile file, FilePipeWriterOptions options)
    {
        _file = file;
        _pool = options.Pool;
        _maxSegmentsPerWrite = file.MaxBuffersPerOperation;

        // If others write to the file, too, the bytes of a flush have to go out in one write.
        bool keepsFlushesWhole = file.Appends || file.SharesPosition;
        _flushEnds = keepsFlushesWhole ? new Queue<long>() : null;

        // If a write takes one segment only, small segments would make small writes. The library's own pool rounds small sizes up, so less
        // than its minimum would leave memory unused.
        int least = _maxSegmentsPerWrite == 1 ? LeastSingleSegment : keepsFlushesWhole ? MaxWholeFlush
            : _pool is null ? SegmentPool.MinSize : 1;
        _segmentSize = Math.Max(options.MinimumBufferSize, least);
    }

    /// <summary>Whether the writer is completed, and takes no more bytes. Any thread may read it.</summary>
    internal bool IsCompleted => Volatile.Read(ref _isCompleted);

    /// <summary>The number of bytes that the system has taken. Guarded by the lock: a reader without it may get an old value.</summary>
    internal long Written { get; private set; }

    /// <summary>The number of bytes that were handed over to be written. Guarded as <see cref="Written"/>.</summary>
    internal long Flushed { get; private set; }

    /// <summary>
    /// The number of bytes that the caller has advanced over. Owned by the writer's caller. Written with release semantics: a thread that
    /// completes the writer sees the bytes as well as the number.
    /// </summary>
    internal long Advanced
    {
        get => Volatile.Read(ref _advanced);
        private set => Volatile.Write(ref _advanced, value);
    }

    internal void Complete() => Volatile.Write(ref _isCompleted, true);

    /// <summary>
    /// Gets the memory for the next bytes. Called by the writer's caller, without the lock. <see cref="ReleaseAllLocked"/> may run
    /// meanwhile, after Abort. So this method sets <see cref="_callerHasRoom"/> first and reads <see cref="IsCompleted"/> then: if that is
    /// still <see langword="false"/>, the release sees the flag, and does not free the memory. Otherwise the memory may be gone, and is not
    /// touched.
    /// </summary>
    internal bool TryGetRoom(int sizeHint, out Memory<byte> room)
    {
        bool hadRoom = _callerHasRoom;
        Volatile.Write(ref _callerHasRoom, true);
        if (!IsCompleted && _tail is { } tail && sizeHint >= 0)
        {
            // Local copies, because ReleaseAllLocked may clear both fields meanwhile.
            Memory<byte> buffer = tail.Buffer;
            int start = _tailEnd;
            if (buffer.Length - start is int length && length > 0 && length >= sizeHint)
            {
                room = buffer[start..];
                return true;
            }
        }

        Volatile.Write(ref _callerHasRoom, hadRoom);
        room = default;
        return false;
    }

    /// <summary>
    /// Takes bytes that the caller has written into its memory. Returns <see langword="false"/> if they are negative or more than
    /// <paramref name="room"/>. Called by the writer's caller.
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
    /// Rents a pinned segment with room for <paramref name="sizeHint"/> bytes, or less if a caller's pool provides less. Called by the
    /// writer's caller, without the lock, because it may run the code of that pool.
    /// </summary>
    /// <param name="sizeHint">The number of bytes that are needed, or 0; <see cref="MaxRoom"/> at most.</param>
    internal FileSegment Rent(int sizeHint)
    {
        int size = Math.Max(_segmentSize, sizeHint);
        return _pool is null || sizeHint > _pool.MaxBufferSize ? SegmentPool.Shared.Rent(size)
            : SegmentPool.Shared.Rent(size, _pool, pins: true);
    }

    /// <summary>
    /// Appends a segment as the new tail, unless the writer is completed, or the segment is too small: a caller's pool decides how large it
    /// is, and its code may have used the writer meanwhile. Called by the writer's caller.
    /// </summary>
    /// <param name="segment">What <see cref="Rent"/> has returned.</param>
    /// <param name="sizeHint">The number of bytes that are needed, or 0.</param>
    /// <param name="freed">Segments that are written, or the segment itself if it was not appended.</param>
    internal void AppendLocked(FileSegment segment, int sizeHint, out FileSegment? freed)
    {
        Debug.Assert(segment.NextSegment is null);
        if (IsCompleted || segment.Capacity < sizeHint)
        {
            freed = segment;
            return;
        }

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
        freed = TakeBefore(Written);
    }

    /// <summary>Hands over everything that the caller has advanced over. Called by the writer's caller, or by Complete.</summary>
    internal void FlushLocked()
    {
        Debug.Assert(Written <= Flushed && Flushed <= Advanced);
        if (Advanced > Flushed)
        {
            _flushEnds?.Enqueue(Advanced);
            Flushed = Advanced;
        }
    }

    /// <summary>
    /// Gives the request the next flushed bytes. Their segments stay in the chain until <see cref="TakeWrittenLocked"/>.
    /// </summary>
    internal void BeginWriteLocked(FileRequest request)
    {
        Debug.Assert(Flushed > Written && request.BufferCount == 0);
        long end = EndOfWrite();
        if (Gather(end, request) < end && _flushEnds is not null && end - Written <= MaxWholeFlush)
        {
            request.Clear();
            request.Begin(FileRequestKind.Write, request.Offset);
            _joined ??= SegmentPool.Shared.Rent(MaxWholeFlush);
            _ = Gather(end, request: null);
            request.Add(_joined, start: 0, (int)(end - Written));
        }
    }

    /// <summary>
    /// Records that the system has taken that many more bytes. If everything was written before, they were the caller's own, whose call
    /// this is: then they count as handed over.
    /// </summary>
    internal void OnWrittenLocked(long bytes)
    {
        if (Written == Flushed)
        {
            Flushed = Advanced = _advanced + bytes;
            _tail?.SetRunningIndex(_tail.RunningIndex + bytes);
        }

        Written += bytes;
        Debug.Assert(bytes > 0 && Written <= Flushed);
    }

    /// <summary>Takes out the segments whose bytes are all written. No write is running.</summary>
    internal FileSegment? TakeWrittenLocked() => TakeBefore(Written);

    /// <summary>
    /// After a failure: takes out the segments that were handed over, which will not be written. The caller's tail stays. No write is
    /// running.
    /// </summary>
    internal FileSegment? DropFlushedLocked()
    {
        _flushEnds?.Clear();
        return TakeBefore(Flushed);
    }

    /// <summary>
    /// Takes out every segment. No write is running, and the writer is completed, so that the caller gets no memory any more.
    /// </summary>
    /// <param name="isAborted">Whether the writer's caller may be in a call.</param>
    /// <param name="held">
    /// The segment whose memory the caller holds, if nobody else may get that memory: after Abort, which may come while the caller writes
    /// there, and always if it is the library's own. Complete is the caller's, and gives back what its own pool has.
    /// </param>
    internal FileSegment? ReleaseAllLocked(bool isAborted, out FileSegment? held)
    {
        Debug.Assert(IsCompleted);
        if (isAborted)
        {
            // Pairs with TryGetRoom, which sets the flag and then reads whether the writer is completed. It runs for every few bytes, so it
            // has no fence: this one serves both sides.
            Interlocked.MemoryBarrierProcessWide();
        }

        FileSegment? list = TakeBefore(long.MaxValue);
        held = Volatile.Read(ref _callerHasRoom) && (isAborted || _head is { PooledSize: > 0 }) ? _head : null;
        Push(held is null ? _head : null, ref list);
        Push(_joined, ref list);
        _head = _tail = _joined = null;
        _tailEnd = 0;
        return list;

        static void Push(FileSegment? segment, ref FileSegment? list)
        {
            if (segment is not null)
            {
                segment.NextSegment = list;
                list = segment;
            }
        }
    }

    /// <summary>
    /// Adds the bytes from <see cref="Written"/> to <paramref name="end"/> to the request, as far as it takes segments, or copies them to
    /// <see cref="_joined"/>. Returns where it has stopped.
    /// </summary>
    private long Gather(long end, FileRequest? request)
    {
        long position = Written;
        for (FileSegment segment = _head!; position < end && request?.BufferCount != _maxSegmentsPerWrite; segment = segment.NextSegment!)
        {
            int start = (int)(position - segment.RunningIndex);
            int available = (int)Math.Min(segment == _tail ? int.MaxValue : segment.End, Flushed - segment.RunningIndex);
            int length = (int)Math.Min(available - start, end - position);
            if (length <= 0)
            {
                continue;
            }

            request?.Add(segment, start, length);
            if (request is null)
            {
                segment.PinnedSpan.Slice(start, length).CopyTo(_joined!.PinnedSpan[(int)(position - Written)..]);
            }

            position += length;
        }

        return position;
    }

    /// <summary>
    /// The end of the write that begins at <see cref="Written"/>. If flushes are kept whole, it is the end of a flush: of the first one, or
    /// of the last of several that are short together.
    /// </summary>
    private long EndOfWrite()
    {
        long most = Math.Min(Flushed, Written + WriteLoop.BytesPerWrite);
        if (_flushEnds is null)
        {
            return most;
        }

        if (_flushEnd <= Written)
        {
            _flushEnd = _flushEnds.Dequeue();
            while (_flushEnds.TryPeek(out long next) && next - Written <= (_file.Appends ? MaxSharedAppend : MaxWholeFlush))
            {
                _flushEnd = _flushEnds.Dequeue();
            }
        }

        return Math.Min(_flushEnd, most);
    }

    /// <summary>Takes out the segments that end at <paramref name="position"/> or before, except the tail.</summary>
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
