using Pipelines.File.IO;
using Pipelines.File.Memory;

namespace Pipelines.File.Reading;

/// <summary>
/// The bytes that a reader has read and its caller has not consumed, as a chain of segments; what is known of the end behind them; and what
/// the next result says. It is the reader's lock, which guards all of it: a method whose name ends in Locked is called under it.
/// </summary>
/// <remarks>
/// The segments of the read under way are the request's: from <see cref="BeginReadLocked"/> to <see cref="EndReadLocked"/> they, and the
/// rest of the tail's memory, are neither moved nor reused. A method that returns segments leaves it to the caller to give them back to the
/// pool without the lock, as that may run the code of a caller's memory pool.
/// </remarks>
internal sealed class ReadBuffer
{
    /// <summary>
    /// Bytes that one read of most files asks for where the file has as many: <see cref="OpenedFile.BytesPerRead"/>. Chosen by measurement:
    /// docs/tuning.md.
    /// </summary>
    internal const int BytesPerRead = 256 * 1024;

    /// <summary>
    /// Bytes of a segment of the own pool at least, unless <see cref="FilePipeReaderOptions.BufferSize"/> is under
    /// <see cref="ExactBelow"/>. docs/tuning.md.
    /// </summary>
    private const int LeastSegmentSize = 64 * 1024;

    /// <summary>A smaller BufferSize, bytes, is the size of each segment, for tests of parsers.</summary>
    private const int ExactBelow = 512;

    /// <summary>
    /// Bytes that the first read asks for where nobody knows how many there are; it doubles for as long as reads fill what they ask for.
    /// </summary>
    private const int FirstUnknownRead = 4 * 1024;

    /// <summary>Bytes that one read of unknown size asks for at most because a caller wants so many.</summary>
    private const int MaxUnknownRead = 1024 * 1024;

    /// <summary>The most segments that one read fills.</summary>
    private const int MaxSegmentsPerRead = 128;

    /// <summary>Where a read fills one segment only: the room, bytes, that makes it go on in the segment before.</summary>
    private const int MinRoomOfOnly = 2 * 1024;

    private readonly FilePipeReaderOptions _options;
    private readonly byte _maxSegments;
    private readonly bool _asksBehindEnd;

    // Where the segments come from; null for the own pool.
    private readonly MemoryPool<byte>? _pool;

    // After the release what the caller had then, without a tail.
    private FileSegment? _head;
    private FileSegment? _tail;

    // How much of the tail the read under way may fill, bytes.
    private int _readOfTail;

    // Bytes consumed, and bytes read, since the beginning.
    private long _start;
    private long _readEnd;

    private EndOfFile _endOfFile;
    private int _unknownReadSize;
    private bool _hasUnexamined;

    // A read has returned a buffer that no AdvanceTo has followed.
    private bool _callerHasBuffer;
    private bool _isReadAheadPaused;

    // The task of every read that throws the error: each time as it was, without the traces of the earlier reads.
    private Task<ReadResult>? _failedRead;

    internal ReadBuffer(FilePipeReaderOptions options, OpenedFile file)
    {
        _options = options;
        File = file;
        _pool = options.Pool;
        _maxSegments = (byte)Math.Min(file.MaxBuffersPerOperation, MaxSegmentsPerRead);
        _unknownReadSize = Math.Min(options.BufferSize, FirstUnknownRead);
        _asksBehindEnd = !options.Follow && file is { ReadGranularity: 1, Properties.KnownLength: not null } && Alignment == 1;
    }

    /// <summary>What is known of the end of the file, which is not for ever: a file may grow, and a FIFO get another writer.</summary>
    private enum EndOfFile : byte
    {
        Unknown,

        /// <summary>The last read has found it, and no result has said so yet.</summary>
        Found,

        /// <summary>A result has said so. The next read asks the file again.</summary>
        Reported,
    }

    internal OpenedFile File { get; }

    /// <summary>The first error of the file, thrown again by later reads.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>A cancellation has come that the next result says.</summary>
    internal bool IsCancelRequested { get; set; }

    /// <summary>
    /// Whether reads go on where nobody waits for them. Of a followed file only up to the length that it had: a read at its end waits, and
    /// would keep a reader that its caller has forgotten.
    /// </summary>
    internal bool ReadsAhead => PauseThreshold > 0 && !(_options.Follow && NextOffset >= File.Properties.Length);

    /// <summary>Whether the end of a read may run the code of a caller's memory pool.</summary>
    internal bool HasCallersPool => _pool is not null;

    /// <summary>The file offset of the first byte that is not consumed, bytes.</summary>
    internal long Position => _options.Offset + _start;

    /// <summary>The file offset of the next byte to read.</summary>
    internal long NextOffset => _options.Offset + _readEnd;

    /// <summary>How many bytes may still be read; <see langword="null"/>: to the end of the file.</summary>
    internal long? Left => _options.Length - _readEnd;

    /// <summary>Bytes that are read and not consumed.</summary>
    internal long Length => _readEnd - _start;

    private ReadOnlySequence<byte> Sequence
        => Length == 0 ? default : new ReadOnlySequence<byte>(_head!, (int)(_start - _head!.RunningIndex), _tail!, _tail!.End);

    // Nobody else reads ahead what is read past the page cache.
    private long PauseThreshold => _options.PauseReadAheadThreshold > 0 || !File.IsDirect ? _options.PauseReadAheadThreshold
        : File.BytesPerRead;

    // Where one call fills one segment only, it is that segment which is large.
    private int SegmentSize
        => _pool is null && _options.BufferSize >= ExactBelow && _maxSegments > 1
            ? (int)RoundUp(Math.Max(_options.BufferSize, File.IsDirect ? DirectFile.BytesPerCall : LeastSegmentSize), File.ReadGranularity)
            : Math.Max(_options.BufferSize, _maxSegments == 1 ? File.BytesPerRead : 0);

    private int Alignment => _pool is null || File.IsDirect ? File.ReadAlignment : 1;

    /// <summary>Whether a read for that many bytes is over, with a result or an error.</summary>
    internal bool TryAnswerLocked(int minimumSize, out ReadResult result, out Exception? error)
    {
        if (IsCancelRequested || HasEnoughLocked(minimumSize))
        {
            result = TakeResultLocked();
            error = null;
            return true;
        }

        result = default;
        error = Error;
        return error is not null;
    }

    /// <summary>Whether there is something to give without a read.</summary>
    internal bool TryAnswerFromBufferLocked(out ReadResult result)
    {
        bool isThere = IsCancelRequested || (Length > 0 && HasEnoughLocked(0));
        result = isThere ? TakeResultLocked() : default;
        return isThere;
    }

    /// <summary>The result of this moment. A cancellation and the end of the file are said once.</summary>
    internal ReadResult TakeResultLocked()
    {
        AssertLocked();
        ReadResult result = new(Sequence, IsCancelRequested, Left == 0 || _endOfFile == EndOfFile.Found);
        IsCancelRequested = false;
        _callerHasBuffer |= Length > 0;
        if (_endOfFile == EndOfFile.Found)
        {
            _endOfFile = EndOfFile.Reported;
        }

        return result;
    }

    /// <summary>What a read returns that is over.</summary>
    internal ValueTask<ReadResult> Answer(ReadResult result, Exception? error)
        => error is null ? new ValueTask<ReadResult>(result)
            : error == Error ? new ValueTask<ReadResult>(_failedRead ??= Task.FromException<ReadResult>(error))
            : ValueTask.FromException<ReadResult>(error);

    /// <summary>Whether the next bytes are to be read before somebody asks for them.</summary>
    internal bool WantsReadAheadLocked()
    {
        AssertLocked();
        if (_endOfFile != EndOfFile.Unknown || Left == 0 || Error is not null)
        {
            return false;
        }

        if (Length >= PauseThreshold)
        {
            _isReadAheadPaused = true;
        }
        else if (Length <= (_options.PauseReadAheadThreshold > 0 ? _options.EffectiveResumeThreshold : PauseThreshold / 2))
        {
            _isReadAheadPaused = false;
        }

        return !_isReadAheadPaused;
    }

    /// <summary>Sets a read up with the memory that is here: the rest of the tail. <see cref="Rent"/> gives it the rest.</summary>
    internal void BeginReadLocked(FileRequest request, int minimumSize)
    {
        AssertLocked();
        Debug.Assert(_readOfTail == 0);
        request.Begin(FileRequestKind.Read, NextOffset);
        request.Unrented = NextReadSize(minimumSize, NextOffset);

        // Where a read fills one piece of memory, the last bytes of a segment are not worth a call.
        if (_tail is { } tail && tail.Room >= (_maxSegments > 1 ? 1 : Math.Min(request.Unrented, MinRoomOfOnly)))
        {
            _readOfTail = TakeUnrented(request, tail.Room);
            request.Add(tail, tail.End, _readOfTail);
        }
    }

    /// <summary>
    /// Adds as many bytes to a read that is under way as it has told of, up to the known end, where they are wanted or read ahead.
    /// <see cref="Rent"/> gives it the memory.
    /// </summary>
    internal void ExtendReadLocked(FileRequest request, bool areWanted, bool mayReadAhead)
    {
        AssertLocked();
        long next = request.Offset + request.Length;
        bool isExtended = (areWanted || (mayReadAhead && WantsReadAheadLocked())) && next % Alignment == 0 && next < File.Properties.Length;
        request.Unrented = isExtended ? Math.Max(0, NextReadSize(0, next) - request.Length) : 0;
    }

    /// <summary>
    /// Gives the read the rest of its memory, and all of it an address. Called without the lock by whoever has the request, on a thread of
    /// the application's where the memory is a caller's. Throws what a caller's memory pool throws: then the read is not made, and
    /// <see cref="EndReadLocked"/> ends it.
    /// </summary>
    internal void Rent(FileRequest request)
    {
        while (request.Unrented > 0 && request.BufferCount < _maxSegments)
        {
            int size = (int)Math.Min(request.Unrented, SegmentSize);

            // Where the read ends at a boundary the segment does, too, as the next read would go on in it, and cross the next boundary.
            bool isExact = Alignment > 1 && (request.Offset + request.Length + size) % Alignment == 0;
            FileSegment segment = _pool is null
                ? SegmentPool.Shared.Rent(isExact ? size : Math.Min(SegmentPool.SizeOf(size), SegmentSize))
                : SegmentPool.Shared.Rent(isExact ? size : SegmentSize, _pool);
            if (_pool is not null && File.IsDirect)
            {
                DirectFile.RequireWhole(segment);
            }

            segment.Chain = this;
            request.AddToFill(segment, TakeUnrented(request, segment.Capacity));
        }

        request.Pin();
    }

    /// <summary>Records what came of a read.</summary>
    internal FileSegment? EndReadLocked(FileRequest request)
    {
        AssertLocked();
        long filled = request.Transferred;
        if (request.Error is not null)
        {
            Error = request.Error;
        }
        else if (filled > 0)
        {
            _endOfFile = HasFoundEnd(request) ? EndOfFile.Found : EndOfFile.Unknown;
            if (filled == request.Length && request.Offset >= File.Properties.Length)
            {
                _unknownReadSize = Math.Min(_unknownReadSize * 2, File.BytesPerRead);
            }
        }
        else if (!request.IsCanceled)
        {
            _endOfFile = EndOfFile.Found;
        }

        return AppendLocked(request.TakeSegments(filled - Math.Min(filled, _readOfTail)), filled);
    }

    /// <summary>The caller gives the buffer back that it had.</summary>
    /// <exception cref="InvalidOperationException">A position is not one of this chain. Nothing has changed.</exception>
    internal FileSegment? AdvanceToLocked(SequencePosition consumed, SequencePosition examined)
    {
        long consumedIndex = IndexOfLocked(consumed);
        long examinedIndex = consumed.Equals(examined) ? consumedIndex : IndexOfLocked(examined);
        _callerHasBuffer = false;
        _start = consumedIndex;
        _hasUnexamined = _readEnd > Math.Max(consumedIndex, examinedIndex);
        FileSegment? first = _head;
        if (_start == _readEnd && _readOfTail == 0)
        {
            _head = _tail = null;
            return first;
        }

        FileSegment? last = null;
        while (_start >= _head!.RunningIndex + _head.End && _head != _tail)
        {
            last = _head;
            _head = _head.NextSegment;
        }

        if (last is null)
        {
            return null;
        }

        last.NextSegment = null;
        return first;
    }

    /// <summary>
    /// Records what came of a pump that went on behind everything that was read: its bytes count as read and consumed. Nothing is buffered.
    /// </summary>
    internal FileSegment? EndPumpLocked(FilePump pump)
    {
        AssertLocked();
        Debug.Assert(Length == 0 && _readOfTail == 0);
        Error ??= pump.Error;
        _endOfFile = EndOfFile.Unknown;
        if (pump.Copied == 0)
        {
            return null;
        }

        _readEnd += pump.Copied;
        _start = _readEnd;
        FileSegment? dropped = _head;
        _head = _tail = null;
        return dropped;
    }

    /// <summary>
    /// Gives up everything; what was not consumed counts as not read. A buffer that the caller has stays, as whoever got its segments next
    /// would share them with the caller: it waits for
    /// <see cref="TakeBackLocked"/>, or is left to the garbage collector. No read is under way.
    /// </summary>
    internal FileSegment? ReleaseLocked()
    {
        AssertLocked();
        Debug.Assert(_readOfTail == 0);
        FileSegment? released = _callerHasBuffer || _tail is null ? null : _head;
        _head = released is null ? _head : null;
        _tail = null;
        _readEnd = _start;
        _hasUnexamined = false;
        return released;
    }

    /// <summary>
    /// The segments of a buffer that the caller still had when the reader was completed, and gives back now. Before the release there are
    /// none: the release returns them.
    /// </summary>
    internal FileSegment? TakeBackLocked()
    {
        AssertLocked();
        _callerHasBuffer = false;
        FileSegment? segments = _tail is null ? _head : null;
        _head = segments is null ? _head : null;
        return segments;
    }

    [Conditional("DEBUG")]
    internal void AssertLocked() => Debug.Assert(Monitor.IsEntered(this));

    private bool HasEnoughLocked(int minimumSize)
    {
        AssertLocked();
        return (_hasUnexamined && Length >= minimumSize) || Left == 0 || _endOfFile == EndOfFile.Found;
    }

    /// <summary>
    /// Whether a read that has got less than it asked for has seen the end, as far as the file is as long as it was or longer.
    /// </summary>
    private bool HasFoundEnd(FileRequest request)
        => !_options.Follow && request.IsShortAtEnd && request.Transferred < request.Length
            && request.Offset + request.Transferred >= File.Properties.KnownLength;

    /// <summary>The number of bytes since the beginning that a position of the caller's stands for.</summary>
    private long IndexOfLocked(SequencePosition position)
    {
        AssertLocked();
        if (Length > 0 && position.GetObject() is FileSegment segment && segment.Chain == this)
        {
            int integer = position.GetInteger();
            long index = segment.RunningIndex + integer;
            if ((uint)integer <= (uint)segment.End && index >= _start && index <= _readEnd)
            {
                return index;
            }
        }

        throw new InvalidOperationException("The position does not belong to this reader's buffer: it is from another reader, or its bytes were consumed already.");
    }

    /// <summary>
    /// How much of a piece of memory the read fills, of the bytes that have none yet. A read that goes to the known end asks for one byte
    /// more where there is room, so that a plain call that does not get it has found the end.
    /// </summary>
    private int TakeUnrented(FileRequest request, int room)
    {
        int length = (int)Math.Min(request.Unrented, room);
        request.Unrented -= length;
        bool isKnownEnd = _asksBehindEnd && request.Unrented == 0 && request.Offset + request.Length + length == File.Properties.Length;
        return isKnownEnd && room > length && !(Left <= request.Length + length) ? length + 1 : length;
    }

    /// <summary>Appends what a read has filled of the tail and of its own segments. What it has not filled is returned.</summary>
    private FileSegment? AppendLocked(FileSegment? first, long filled)
    {
        _hasUnexamined |= filled > 0;
        int ofTail = (int)Math.Min(filled, _readOfTail);
        if (ofTail > 0)
        {
            _tail!.SetEnd(_tail.End + ofTail);
        }

        _readOfTail = 0;
        _readEnd += ofTail;
        filled -= ofTail;
        FileSegment? segment = first;
        FileSegment? last = null;
        while (filled > 0)
        {
            int length = (int)Math.Min(filled, segment!.Capacity);
            segment.SetRunningIndex(_readEnd);
            segment.SetEnd(length);
            _readEnd += length;
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

        return segment;
    }

    /// <summary>Bytes to ask for: never none.</summary>
    private long NextReadSize(int minimumSize, long offset)
    {
        long missing = Math.Max(0, minimumSize - Length);
        long known = File.Properties.Length - offset;
        long size = known > 0
            ? Math.Min(Math.Max(Math.Max(File.BytesPerRead, _options.BufferSize), missing), known)
            : Math.Max(_unknownReadSize, Math.Min(missing, MaxUnknownRead));
        size = RoundUp(size, File.ReadGranularity);
        long behind = offset % Alignment;
        if (known > 0 && (File.IsDirect ? behind > 0 : Alignment > 1 && _readEnd == 0))
        {
            // The others follow it.
            size = Math.Min(size, Alignment - behind);
        }

        return Math.Min(size, Left - (offset - NextOffset) ?? long.MaxValue);
    }

    private static long RoundUp(long size, int granularity) => (size + granularity - 1) / granularity * granularity;
}
