using System.Buffers;
using System.IO.Pipelines;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;

namespace Pipelines.File;

/// <summary>
/// What a reader has read and what its results have said of it: the bytes, the end of the file, the error, a cancellation that waits for the next read. It is the reader's lock, which guards
/// all of it.
/// </summary>
internal sealed class ReadState
{
    /// <summary>Bytes that one read asks for where the file has as many. Chosen by measurement: docs/tuning.md.</summary>
    internal const int BytesPerRead = 256 * 1024;

    /// <summary>Bytes that the first read asks for where nobody knows how many there are; it doubles for as long as reads fill what they ask for.</summary>
    private const int FirstUnknownRead = 4 * 1024;

    /// <summary>Bytes that one read of unknown size asks for at most because a caller wants so many.</summary>
    private const int MaxUnknownRead = 1024 * 1024;

    private readonly long _offset;
    private ReadChain _chain;
    private EndOfFile _end;
    private int _unknownReadSize;

    // The caller has a buffer: a read has returned one that no AdvanceTo has followed.
    private bool _isOut;
    private bool _isReadAheadPaused;

    // The task of every read that throws the error: each time as it was, without the traces of the earlier reads.
    private Task<ReadResult>? _failedRead;

    /// <param name="options">How to read.</param>
    /// <param name="offset">The file offset of the first byte: the option's, or where standard input stands.</param>
    /// <param name="file">The file.</param>
    internal ReadState(FilePipeReaderOptions options, long offset, FileBackend file)
    {
        Options = options;
        File = file;
        _offset = offset;
        _unknownReadSize = Math.Min(options.BufferSize, FirstUnknownRead);

        // Where one call fills one segment only, it is that segment which is large.
        int segmentSize = file.MaxBuffersPerOperation > 1 ? options.BufferSize : Math.Max(options.BufferSize, BytesPerRead);
        _chain = new ReadChain(segmentSize, file.MaxBuffersPerOperation);
    }

    /// <summary>What is known of the end of the file, which is not for ever: a file may grow, and a FIFO get another writer.</summary>
    private enum EndOfFile : byte
    {
        Unknown,

        /// <summary>The last read has found it, and no result has said so yet.</summary>
        Found,

        /// <summary>A result has said so. The next read asks the file again.</summary>
        Told,
    }

    internal FilePipeReaderOptions Options { get; }

    internal FileBackend File { get; }

    /// <summary>The first error of the file, thrown again by later reads.</summary>
    internal Exception? Error { get; private set; }

    // What a caller's pool gives has the sizes that it has.
    private int Alignment => Options.Pool is null ? File.ReadAlignment : 1;

    /// <summary>A cancellation has come that the next result says.</summary>
    internal bool IsCancelRequested { get; set; }

    /// <summary>The file offset of the first byte that is not consumed, bytes.</summary>
    internal long Position => _offset + _chain.Start;

    /// <summary>What is buffered.</summary>
    internal ReadOnlySequence<byte> Buffered => _chain.Sequence;

    /// <summary>The file offset of the next byte to read.</summary>
    internal long NextOffset => _offset + _chain.End;

    /// <summary>How many bytes may still be read; <see langword="null"/>: to the end of the file.</summary>
    internal long? Left => Options.Length - _chain.End;

    /// <summary>Whether the next bytes are to be read before somebody asks for them.</summary>
    internal bool WantsReadAhead()
    {
        if (_end != EndOfFile.Unknown || Left == 0 || Error is not null)
        {
            return false;
        }

        if (_chain.Length >= Options.PauseReadAheadThreshold)
        {
            _isReadAheadPaused = true;
        }
        else if (_chain.Length <= Options.EffectiveResumeThreshold)
        {
            _isReadAheadPaused = false;
        }

        return !_isReadAheadPaused;
    }

    /// <summary>Sets a read up, with the memory that is here.</summary>
    internal void BeginRead(FileOperation operation, int minimumSize)
    {
        operation.Begin(FileOperationKind.Read, NextOffset);
        _chain.BeginRead(operation, NextReadSize(minimumSize));
    }

    /// <summary>Gives the read the rest of its memory. Called without the lock, by whoever has the operation. Throws what a caller's memory pool throws.</summary>
    internal void Rent(FileOperation operation)
    {
        _chain.RentForRead(operation, Options.Pool, Alignment, this);
        operation.Pin();
    }

    /// <summary>A read for which there was no memory was not made.</summary>
    internal FileSegment? DropRead(FileOperation operation) => _chain.EndRead(operation, 0);

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
            if (transferred == operation.Length && operation.Offset >= File.Properties.Length)
            {
                _unknownReadSize = Math.Min(_unknownReadSize * 2, BytesPerRead);
            }
        }
        else if (!operation.IsCanceled)
        {
            _end = EndOfFile.Found;
        }

        return _chain.EndRead(operation, transferred);
    }

    /// <summary>Records what came of a copy of everything that is not buffered.</summary>
    internal FileSegment? EndCopy(FileCopy copy)
    {
        Error ??= copy.Error;
        _end = EndOfFile.Unknown;
        return copy.Copied > 0 ? _chain.Skip(copy.Copied) : null;
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

    /// <summary>What a read returns that is over.</summary>
    internal ValueTask<ReadResult> Answer(ReadResult result, Exception? error)
        => error is null ? new ValueTask<ReadResult>(result)
            : error == Error ? new ValueTask<ReadResult>(_failedRead ??= Task.FromException<ReadResult>(error))
            : ValueTask.FromException<ReadResult>(error);

    /// <summary>Whether there is something to give without a read.</summary>
    internal bool TryAnswerFromBuffer(out ReadResult result)
    {
        bool isThere = IsCancelRequested || (_chain.Length > 0 && HasEnough(0));
        result = isThere ? TakeResult() : default;
        return isThere;
    }

    /// <summary>The result of this moment, which is told once.</summary>
    internal ReadResult TakeResult()
    {
        ReadResult result = new(_chain.Sequence, IsCancelRequested, Left == 0 || _end == EndOfFile.Found);
        IsCancelRequested = false;
        _isOut |= _chain.Length > 0;
        if (_end == EndOfFile.Found)
        {
            _end = EndOfFile.Told;
        }

        return result;
    }

    /// <summary>The caller gives the buffer back that it had.</summary>
    internal FileSegment? AdvanceTo(SequencePosition consumed, SequencePosition examined)
    {
        long consumedIndex = _chain.IndexOf(consumed, this);
        FileSegment? freed = _chain.AdvanceTo(consumedIndex, consumed.Equals(examined) ? consumedIndex : _chain.IndexOf(examined, this));
        _isOut = false;
        return freed;
    }

    /// <summary>The first bytes of what is buffered went somewhere else than to the caller.</summary>
    internal FileSegment? Skip(int bytes) => _chain.AdvanceTo(_chain.Start + bytes, _chain.Start + bytes);

    /// <summary>The caller gives the buffer back after the reader was completed.</summary>
    internal FileSegment? TakeOut()
    {
        _isOut = false;
        return _chain.TakeOut();
    }

    /// <summary>Lets go of everything but a buffer that is out.</summary>
    internal FileSegment? Release() => _chain.Release(_isOut);

    private bool HasEnough(int minimumSize) => (_chain.HasUnexamined && _chain.Length >= minimumSize) || Left == 0 || _end == EndOfFile.Found;

    /// <summary>Bytes to ask for: never none.</summary>
    private long NextReadSize(int minimumSize)
    {
        long missing = Math.Max(0, minimumSize - _chain.Length);
        long known = File.Properties.Length - NextOffset;
        long size = known > 0
            ? Math.Min(Math.Max(Math.Max(BytesPerRead, Options.BufferSize), missing), known)
            : Math.Max(_unknownReadSize, Math.Min(missing, MaxUnknownRead));
        int granularity = File.ReadGranularity;
        size = (size + granularity - 1) / granularity * granularity;
        if (Alignment > 1 && _chain.End == 0 && known > 0)
        {
            // Only the first: the others follow it.
            size = Math.Min(size, Alignment - (NextOffset % Alignment));
        }

        return Math.Min(size, Left ?? long.MaxValue);
    }
}
