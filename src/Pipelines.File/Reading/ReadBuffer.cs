using Pipelines.File.IO;
using Pipelines.File.Memory;

namespace Pipelines.File.Reading;

/// <summary>
/// The bytes that a reader has read and its caller has not consumed, as a chain of segments; what is known about the end of the file; and
/// what the next result reports. The object is the reader's lock, and guards all of this. A method whose name ends in Locked is called
/// under the lock.
/// </summary>
/// <remarks>
/// The running read owns its segments and the room of the tail from <see cref="BeginReadLocked"/> to <see cref="EndReadLocked"/>: they are
/// neither moved nor reused. Methods return the segments that are no longer needed. The caller returns these to the pool without the lock,
/// because that may run the code of a caller's memory pool.
/// </remarks>
internal sealed class ReadBuffer
{
    /// <summary>
    /// The number of bytes that one read asks for if the file has as many, which is the size of its segment, too: a parser meets few
    /// boundaries. Chosen by measurement: benchmarks/defaults.md.
    /// </summary>
    internal const int BytesPerRead = 256 * 1024;

    /// <summary>A smaller <see cref="FilePipeReaderOptions.BufferSize"/>, bytes, is the size of a segment, for tests of parsers.</summary>
    private const int ExactBelow = 512;

    /// <summary>
    /// The number of bytes that the first read asks for if the length of the file is unknown. It doubles after every read that was filled.
    /// </summary>
    private const int FirstUnknownRead = 4 * 1024;

    /// <summary>The minimum room of the tail, bytes, that is worth a call of its own.</summary>
    private const int MinTailRoom = 2 * 1024;

    private readonly FilePipeReaderOptions _options;

    // The largest size of a segment, bytes. A read fills one, or the room of the tail.
    private readonly int _segmentSize;

    private FileSegment? _head;
    private FileSegment? _tail;

    // The running read: how many bytes it asks for, and whether it fills the room of the tail or a segment of its own, once that is rented.
    private int _readSize;
    private bool _fillsTail;
    private FileSegment? _filling;

    // Bytes consumed, and bytes read, both from the first byte of the reader.
    private long _start;
    private long _readEnd;

    private EndOfFile _endOfFile;
    private int _unknownReadSize;
    private bool _hasUnexamined;

    // A read has returned a buffer, and no AdvanceTo has followed.
    private bool _callerHasBuffer;
    private bool _isReadAheadPaused;

    // The one task that all reads after the error return, so that each throws it without the stack traces of earlier reads.
    private Task<ReadResult>? _failed;

    internal ReadBuffer(FilePipeReaderOptions options, OpenedFile file)
    {
        _options = options;
        File = file;
        _segmentSize = options.BufferSize < ExactBelow ? options.BufferSize : Math.Max(options.BufferSize, BytesPerRead);
        _unknownReadSize = Math.Min(options.BufferSize, FirstUnknownRead);
    }

    /// <summary>What is known about the end of the file. It can change: a file may grow, and a FIFO may get another writer.</summary>
    private enum EndOfFile : byte
    {
        Unknown,

        /// <summary>The last read has found it, and no result has reported it yet.</summary>
        Found,

        /// <summary>A result has reported it. The next read asks the file again.</summary>
        Reported,
    }

    internal OpenedFile File { get; }

    /// <summary>The first error of the file, thrown again by later reads.</summary>
    internal Exception? Error
    {
        get;
        private set
        {
            field = value;
            _failed = null;
        }
    }

    /// <summary>Whether the last read has found the end of a file of at most <see cref="OpenedFile.ShortFile"/> bytes.</summary>
    internal bool IsShortFile => _endOfFile != EndOfFile.Unknown && NextOffset <= OpenedFile.ShortFile;

    /// <summary>Whether a read has found the end before the Length of the options was read.</summary>
    internal bool HasEndedEarly { get; private set; }

    /// <summary>A cancellation has come, and the next result reports it.</summary>
    internal bool IsCancelRequested { get; set; }

    /// <summary>
    /// Whether reads continue when nobody waits for them. A followed file is read ahead only up to its length at opening: a read at its end
    /// waits, and would keep a reader that its caller has forgotten from being collected.
    /// </summary>
    internal bool ReadsAhead => _options.PauseReadAheadThreshold > 0 && !(_options.Follow && NextOffset >= File.Properties.Length);

    /// <summary>Whether the end of a read may run the code of a caller's memory pool.</summary>
    internal bool HasCallersPool => _options.Pool is not null;

    /// <summary>The file offset, in bytes, of the first byte that is not consumed. Any thread may read it without the lock.</summary>
    internal long Position => _options.Offset + Volatile.Read(ref _start);

    /// <summary>The file offset of the next byte to read.</summary>
    internal long NextOffset => _options.Offset + _readEnd;

    /// <summary>How many bytes may still be read; <see langword="null"/>: to the end of the file.</summary>
    internal long? Left => _options.Length - _readEnd;

    /// <summary>The number of bytes that are read and not consumed.</summary>
    internal long Length => _readEnd - _start;

    private ReadOnlySequence<byte> Sequence
        => Length == 0 ? default : new ReadOnlySequence<byte>(_head!, (int)(_start - _head!.RunningIndex), _tail!, _tail!.End);

    /// <summary>Whether a read of at least <paramref name="minimumSize"/> bytes can complete now, with a result or an error.</summary>
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

    /// <summary>Whether TryRead has a result: buffered bytes that are not examined or end with the file, or a cancellation.</summary>
    internal bool TryAnswerFromBufferLocked(out ReadResult result)
    {
        bool isThere = IsCancelRequested || (Length > 0 && HasEnoughLocked(0));
        result = isThere ? TakeResultLocked() : default;
        return isThere;
    }

    /// <summary>Makes the result of this moment. A cancellation, and an end of the file that was found, are reported once.</summary>
    internal ReadResult TakeResultLocked()
    {
        AssertLocked();
        ReadResult result = new(Sequence, IsCancelRequested, Left == 0 || _endOfFile == EndOfFile.Found || File.EndsAt(NextOffset));
        IsCancelRequested = false;
        _callerHasBuffer |= Length > 0;
        if (_endOfFile == EndOfFile.Found)
        {
            _endOfFile = EndOfFile.Reported;
        }

        return result;
    }

    /// <summary>The task of a read that has completed.</summary>
    internal ValueTask<ReadResult> Answer(ReadResult result, Exception? error)
        => error is null ? new ValueTask<ReadResult>(result)
            : error == Error ? new ValueTask<ReadResult>(_failed ??= Task.FromException<ReadResult>(error))
            : ValueTask.FromException<ReadResult>(error);

    /// <summary>Whether to read ahead now, as the thresholds say. Not after the end or an error.</summary>
    internal bool WantsReadAheadLocked()
    {
        AssertLocked();
        if (_endOfFile != EndOfFile.Unknown || Left == 0 || Error is not null)
        {
            return false;
        }

        if (Length >= _options.PauseReadAheadThreshold)
        {
            _isReadAheadPaused = true;
        }
        else if (Length <= _options.EffectiveResumeThreshold)
        {
            _isReadAheadPaused = false;
        }

        return !_isReadAheadPaused;
    }

    /// <summary>Sets a read up with the room of the tail, or without memory, which <see cref="Rent"/> then adds.</summary>
    internal void BeginReadLocked(FileRequest request, int minimumSize)
    {
        AssertLocked();
        Debug.Assert(!_fillsTail && _filling is null);
        request.Begin(FileRequestKind.Read, NextOffset);
        request.ExpectsEnd = _endOfFile == EndOfFile.Unknown && NextOffset == File.Properties.KnownLength;
        _readSize = NextReadSize(minimumSize);
        if (_tail is { } tail && tail.Room >= Math.Min(_readSize, MinTailRoom))
        {
            _fillsTail = true;
            request.Add(tail, tail.End, Math.Min(_readSize, tail.Room));
        }
    }

    /// <summary>
    /// Adds a segment if the read has no memory yet, and pins its memory. Called without the lock by the owner of the request, with a
    /// caller's pool on a thread of the application. Throws what that pool throws: then the read is not performed, and
    /// <see cref="EndReadLocked"/> ends it.
    /// </summary>
    internal void Rent(FileRequest request)
    {
        if (request.BufferCount == 0)
        {
            int size = Math.Min(_segmentSize, SegmentPool.SizeOf(_readSize));
            _filling = _options.Pool is { } pool ? SegmentPool.Shared.Rent(size, pool) : SegmentPool.Shared.Rent(size);
            _filling.Chain = this;
            request.Add(_filling, 0, Math.Min(_readSize, _filling.Capacity));
        }

        request.Pin();
    }

    /// <summary>
    /// Unpins the memory of a read, and returns a segment that it did not fill to its pool. Called by the owner of the request,
    /// without the lock and before <see cref="EndReadLocked"/>: until that has ended the read, the release waits.
    /// </summary>
    internal void ReturnUnfilled(FileRequest request)
    {
        request.Clear();
        if (request.Transferred == 0)
        {
            // An error of the caller's pool, thrown when it took memory back, does not fail this read.
            _ = SegmentPool.Shared.Return(_filling);
            _filling = null;
        }
    }

    /// <summary>Records the result of a read.</summary>
    internal void EndReadLocked(FileRequest request)
    {
        AssertLocked();
        long filled = request.Transferred;
        Debug.Assert(filled >= 0 && filled <= request.Length);
        if (request.Error is not null)
        {
            Error = request.Error;
        }
        else if (filled > 0)
        {
            _endOfFile = EndOfFile.Unknown;
            if (filled == request.Length && request.Offset >= File.Properties.Length)
            {
                _unknownReadSize = Math.Min(_unknownReadSize * 2, BytesPerRead);
            }
        }
        else if (!request.IsCanceled)
        {
            _endOfFile = EndOfFile.Found;
            HasEndedEarly |= Left > 0;
        }

        AppendLocked((int)filled);
    }

    /// <summary>Ends the caller's use of its buffer. Returns the segments that are consumed.</summary>
    /// <exception cref="InvalidOperationException">A position is not one of this chain. Nothing has changed.</exception>
    internal FileSegment? AdvanceToLocked(SequencePosition consumed, SequencePosition examined)
    {
        long consumedIndex = IndexOfLocked(consumed);
        long examinedIndex = consumed.Equals(examined) ? consumedIndex : IndexOfLocked(examined);
        _callerHasBuffer = false;
        Volatile.Write(ref _start, consumedIndex);
        _hasUnexamined = _readEnd > Math.Max(consumedIndex, examinedIndex);
        FileSegment? first = _head;
        FileSegment? last = null;
        while (_head is not null && _start >= _head.RunningIndex + _head.End && (_head != _tail || !_fillsTail))
        {
            last = _head;
            _head = _head.NextSegment;
        }

        _tail = _head is null ? null : _tail;
        last?.NextSegment = null;
        return last is null ? null : first;
    }

    /// <summary>
    /// Makes the next read return what is buffered, also if the caller has examined it: a copy takes it before it reads on.
    /// </summary>
    internal void UnexamineLocked()
    {
        AssertLocked();
        _hasUnexamined = Length > 0;
    }

    /// <summary>
    /// Drops everything; bytes that were not consumed count as not read. Returns the segments. Those of a buffer that the caller still
    /// holds must not be reused, so they are left to the garbage collector, but memory of a caller's pool goes back to it. No read is
    /// running.
    /// </summary>
    internal FileSegment? ReleaseLocked()
    {
        AssertLocked();
        Debug.Assert(!_fillsTail);
        (FileSegment? released, _head, _tail) = (_head, null, null);
        _readEnd = _start;
        _hasUnexamined = false;
        for (FileSegment? segment = released; segment is not null; segment = segment.NextSegment)
        {
            segment.IsLookedAt = _callerHasBuffer;
        }

        return _callerHasBuffer && !HasCallersPool ? null : released;
    }

    [Conditional("DEBUG")]
    internal void AssertLocked() => Debug.Assert(Monitor.IsEntered(this));

    private bool HasEnoughLocked(int minimumSize)
    {
        AssertLocked();
        return (_hasUnexamined && Length >= minimumSize) || Left == 0 || _endOfFile == EndOfFile.Found;
    }

    /// <summary>The number of bytes from the first byte of the reader to a position of the caller's.</summary>
    /// <exception cref="InvalidOperationException">The position is not one of this chain.</exception>
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

        throw new InvalidOperationException(
            "The position does not belong to this reader's buffer: it is from another reader, or its bytes were consumed already.");
    }

    /// <summary>Appends the bytes that a read has put into the tail or into a segment of its own.</summary>
    private void AppendLocked(int filled)
    {
        if (_filling is { } segment)
        {
            segment.SetRunningIndex(_readEnd);
            segment.SetEnd(filled);
            _head ??= segment;
            _tail?.NextSegment = segment;
            _tail = segment;
            _filling = null;
        }
        else if (filled > 0)
        {
            _tail!.SetEnd(_tail.End + filled);
        }

        _fillsTail = false;
        _hasUnexamined |= filled > 0;
        _readEnd += filled;
    }

    /// <summary>The number of bytes to ask for, at least 1.</summary>
    private int NextReadSize(int minimumSize)
    {
        long known = File.Properties.Length - NextOffset;
        long size = known > 0 ? known : Math.Max(_unknownReadSize, minimumSize - Length);
        return (int)Math.Min(Math.Min(size, _segmentSize), Left ?? long.MaxValue);
    }
}
