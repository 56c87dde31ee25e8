using System.IO.Pipelines;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;

namespace Pipelines.File;

/// <summary>
/// What a reader has read and what its results have said of it: the bytes, the end of the file, the error, a cancellation that waits for the next read. The reader's lock guards all of it.
/// </summary>
internal sealed class ReadState
{
    /// <summary>Bytes that one read asks for where the file has as many. Chosen by measurement: docs/tuning.md.</summary>
    internal const int BytesPerRead = 256 * 1024;

    /// <summary>Bytes that the first read asks for where nobody knows how many there are; it doubles for as long as reads fill what they ask for.</summary>
    private const int FirstUnknownRead = 4 * 1024;

    /// <summary>Bytes that one read of unknown size asks for at most because a caller wants so many.</summary>
    private const int MaxUnknownRead = 1024 * 1024;

    private readonly FilePipeReaderOptions _options;
    private readonly long _offset;
    private readonly long _knownLength;
    private readonly int _granularity;
    private readonly int _alignment;
    private EndOfFile _end;
    private int _unknownReadSize;

    // The caller has a buffer: a read has returned one that no AdvanceTo has followed.
    private bool _isOut;
    private bool _isReadAheadPaused;

    /// <param name="options">How to read.</param>
    /// <param name="offset">The file offset of the first byte: the option's, or where standard input stands.</param>
    /// <param name="backend">The file.</param>
    internal ReadState(FilePipeReaderOptions options, long offset, FileBackend backend)
    {
        _options = options;
        _offset = offset;
        _knownLength = backend.Properties.Length;
        _granularity = backend.ReadGranularity;

        // What a caller's pool gives has the sizes that it has.
        _alignment = options.Pool is null ? backend.ReadAlignment : 1;
        _unknownReadSize = Math.Min(options.BufferSize, FirstUnknownRead);

        // Where one call fills one segment only, it is that segment which is large.
        int segmentSize = backend.MaxBuffersPerOperation > 1 ? options.BufferSize : Math.Max(options.BufferSize, BytesPerRead);
        Chain = new ReadChain(options.Pool, segmentSize, backend.MaxBuffersPerOperation, BytesPerRead, _alignment);
    }

    /// <summary>What is known of the end of the file, which is not for ever: a file may grow, and a FIFO get another writer.</summary>
    private enum EndOfFile
    {
        Unknown,

        /// <summary>The last read has found it, and no result has said so yet.</summary>
        Found,

        /// <summary>A result has said so. The next read asks the file again.</summary>
        Told,
    }

    /// <summary>The lock guards it but for the memory of the read under way, see there.</summary>
    internal ReadChain Chain { get; }

    /// <summary>The first error of the file, thrown again by later reads.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>A cancellation has come that the next result says.</summary>
    internal bool IsCancelRequested { get; set; }

    /// <summary>The file offset of the first byte that is not consumed, bytes.</summary>
    internal long Position => _offset + Chain.Start;

    /// <summary>The file offset of the next byte to read.</summary>
    internal long NextOffset => _offset + Chain.End;

    /// <summary>How many bytes may still be read; <see langword="null"/>: to the end of the file.</summary>
    internal long? Left => _options.Length - Chain.End;

    /// <summary>Whether the next bytes are to be read before somebody asks for them.</summary>
    internal bool WantsReadAhead()
    {
        if (_end != EndOfFile.Unknown || Left == 0 || Error is not null)
        {
            return false;
        }

        if (Chain.Length >= _options.PauseReadAheadThreshold)
        {
            _isReadAheadPaused = true;
        }
        else if (Chain.Length <= _options.EffectiveResumeThreshold)
        {
            _isReadAheadPaused = false;
        }

        return !_isReadAheadPaused;
    }

    /// <summary>Sets a read up. Returns the bytes of it that have no memory yet, for <see cref="ReadChain.RentForRead"/>.</summary>
    internal long BeginRead(FileOperation operation, int minimumSize)
    {
        operation.Begin(FileOperationKind.Read, NextOffset);
        return Chain.BeginRead(operation, NextReadSize(minimumSize));
    }

    /// <summary>Records what came of a read.</summary>
    internal FileSegment? EndRead(FileOperation operation)
    {
        long transferred = operation.Transferred;
        if (operation.Error is not null)
        {
            Error = operation.Error;
        }
        else if (transferred > 0)
        {
            _end = EndOfFile.Unknown;
            if (transferred == operation.Length && operation.Offset >= _knownLength)
            {
                _unknownReadSize = Math.Min(_unknownReadSize * 2, BytesPerRead);
            }
        }
        else if (!operation.IsCanceled)
        {
            _end = EndOfFile.Found;
        }

        return Chain.EndRead(transferred);
    }

    /// <summary>Records what came of a copy of everything that is not buffered.</summary>
    internal FileSegment? EndCopy(FileCopy copy)
    {
        Error ??= copy.Error;
        _end = EndOfFile.Unknown;
        return copy.Copied > 0 ? Chain.Skip(copy.Copied) : null;
    }

    /// <summary>Whether a read for that many bytes is over, with a result or an error.</summary>
    internal bool TryAnswer(int minimumSize, out ReadResult result, out Exception? error)
    {
        if (IsCancelRequested || HasEnough(minimumSize))
        {
            result = TakeResult();
            error = null;
            return true;
        }

        result = default;
        error = Error;
        return error is not null;
    }

    /// <summary>Whether there is something to give without a read.</summary>
    internal bool TryAnswerFromBuffer(out ReadResult result)
    {
        bool isThere = IsCancelRequested || (Chain.Length > 0 && HasEnough(0));
        result = isThere ? TakeResult() : default;
        return isThere;
    }

    /// <summary>The result of this moment, which is told once.</summary>
    internal ReadResult TakeResult()
    {
        ReadResult result = new(Chain.Sequence, IsCancelRequested, Left == 0 || _end == EndOfFile.Found);
        IsCancelRequested = false;
        _isOut |= Chain.Length > 0;
        if (_end == EndOfFile.Found)
        {
            _end = EndOfFile.Told;
        }

        return result;
    }

    /// <summary>The caller gives the buffer back that it had.</summary>
    internal FileSegment? AdvanceTo(SequencePosition consumed, SequencePosition examined)
    {
        long consumedIndex = Chain.IndexOf(consumed);
        FileSegment? freed = Chain.AdvanceTo(consumedIndex, consumed.Equals(examined) ? consumedIndex : Chain.IndexOf(examined));
        _isOut = false;
        return freed;
    }

    /// <summary>The caller gives the buffer back after the reader was completed.</summary>
    internal FileSegment? TakeOut()
    {
        _isOut = false;
        return Chain.TakeOut();
    }

    /// <summary>Lets go of everything but a buffer that is out.</summary>
    internal FileSegment? Release() => Chain.Release(_isOut);

    private bool HasEnough(int minimumSize) => (Chain.HasUnexamined && Chain.Length >= minimumSize) || Left == 0 || _end == EndOfFile.Found;

    /// <summary>Bytes to ask for: never none.</summary>
    private long NextReadSize(int minimumSize)
    {
        long missing = Math.Max(0, minimumSize - Chain.Length);
        long known = _knownLength - NextOffset;
        long size = known > 0
            ? Math.Min(Math.Max(Math.Max(BytesPerRead, _options.BufferSize), missing), known)
            : Math.Max(_unknownReadSize, Math.Min(missing, MaxUnknownRead));
        size = (size + _granularity - 1) / _granularity * _granularity;
        if (_alignment > 1 && Chain.End == 0 && known > 0)
        {
            // Only the first: the others follow it.
            size = Math.Min(size, _alignment - (NextOffset % _alignment));
        }

        return Math.Min(size, Left ?? long.MaxValue);
    }
}
