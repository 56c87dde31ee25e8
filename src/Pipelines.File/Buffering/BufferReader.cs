using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Buffering;

/// <summary>
/// One reader of a <see cref="FileBufferingPipe"/>. While the pipe has the bytes from its position on in memory, it returns that memory;
/// otherwise a <see cref="FilePipeReader"/> of the part that is in the file reads for it, and bytes that are not there yet are awaited.
/// </summary>
/// <remarks>All of its fields are guarded by the pipe's lock. What a reading caller holds ends with its AdvanceTo.</remarks>
internal sealed class BufferReader(FileBufferingPipe pipe, long offset) : PipeReader
{
    private long _consumed = offset;
    private long _examined = offset;
    private bool _isCompleted;
    private bool _isReading;
    private bool _isCancelRequested;

    // The buffer that the caller has, from memory.
    private FileBufferingPipe.Hold _held;

    // What reads the file, from one offset to another, and whether the caller has a buffer of it.
    private FilePipeReader? _file;
    private long _fileStart;
    private long _fileEnd;
    private bool _hasFileBuffer;

    internal long ConsumedLocked => _isCompleted ? long.MaxValue : _consumed;

    internal bool IsCompletedLocked => _isCompleted;

    private bool IsInMemoryLocked => _consumed >= pipe.StartLocked;

    public override ValueTask<ReadResult> ReadAsync(CancellationToken cancellationToken = default) => ReadCoreAsync(0, cancellationToken);

    protected override ValueTask<ReadResult> ReadAtLeastAsyncCore(int minimumSize, CancellationToken cancellationToken)
        => ReadCoreAsync(minimumSize, cancellationToken);

    // What is in the file, ReadAsync returns.
    public override bool TryRead(out ReadResult result)
    {
        bool isThere;
        FilePipeReader? unused;
        lock (pipe.Gate)
        {
            BeginLocked();
            isThere = TryAnswerLocked(0, out result, out unused);
        }

        unused?.Complete();
        return isThere;
    }

    public override void AdvanceTo(SequencePosition consumed) => AdvanceTo(consumed, consumed);

    public override void AdvanceTo(SequencePosition consumed, SequencePosition examined)
    {
        FileBufferingPipe.Hold held;
        FileSegment? freed;
        FilePipeReader? file;
        lock (pipe.Gate)
        {
            ThrowIfReadingLocked();
            file = _hasFileBuffer ? _file : null;
            if (file is null && _held.First is null)
            {
                // Positions of an empty buffer: there is nothing to advance over.
                return;
            }
        }

        if (file is not null)
        {
            AdvanceFile(file, consumed, examined);
            return;
        }

        lock (pipe.Gate)
        {
            long from = IndexOfLocked(consumed);
            long to = IndexOfLocked(examined);
            _consumed = from;
            _examined = Math.Max(from, to);
            (held, _held) = (_held, default);
            freed = pipe.DropConsumedLocked(_consumed);
        }

        _ = SegmentPool.Shared.Return(freed);
        pipe.Free(held);
        if (freed is not null)
        {
            // A flush may wait for the room.
            pipe.Wake();
        }
    }

    public override void CancelPendingRead()
    {
        FilePipeReader? file;
        lock (pipe.Gate)
        {
            _isCancelRequested = true;
            file = _isReading ? _file : null;
        }

        file?.CancelPendingRead();
        pipe.Wake();
    }

    public override void Complete(Exception? exception = null)
    {
        FileBufferingPipe.Hold held = default;
        FilePipeReader? file;
        FileSegment? freed;
        lock (pipe.Gate)
        {
            if (_isCompleted)
            {
                return;
            }

            _isCompleted = true;
            pipe.RemoveLocked(this);
            file = _file;
            if (pipe.HasCallersPool)
            {
                (held, _held) = (_held, default);
                for (FileSegment? segment = held.First; segment is not null; segment = segment == held.Last ? null : segment.NextSegment)
                {
                    segment.IsLookedAt = true;
                }
            }

            freed = pipe.DropConsumedLocked(long.MaxValue);
        }

        _ = SegmentPool.Shared.Return(freed);
        pipe.Free(held);
        file?.Complete();
        pipe.Wake();
    }

    private ValueTask<ReadResult> ReadCoreAsync(int minimumSize, CancellationToken cancellationToken)
    {
        ReadResult result;
        FilePipeReader? unused;
        lock (pipe.Gate)
        {
            BeginLocked();
            if (cancellationToken.IsCancellationRequested)
            {
                return ValueTask.FromCanceled<ReadResult>(cancellationToken);
            }

            try
            {
                _isReading = !TryAnswerLocked(minimumSize, out result, out unused);
            }
            catch (Exception e)
            {
                return ValueTask.FromException<ReadResult>(e);
            }

            if (_isReading)
            {
                return ReadSlowAsync(minimumSize, cancellationToken);
            }
        }

        unused?.Complete();
        return new ValueTask<ReadResult>(result);
    }

    private async ValueTask<ReadResult> ReadSlowAsync(int minimumSize, CancellationToken cancellationToken)
    {
        try
        {
            while (true)
            {
                PendingResult<bool>? wait = null;
                FilePipeReader? file = null;
                FilePipeReader? unused;
                ReadResult result;
                int least = 0;
                bool spills = false;
                bool isOver;
                lock (pipe.Gate)
                {
                    isOver = TryAnswerLocked(minimumSize, out result, out unused);
                    if (!isOver)
                    {
                        cancellationToken.ThrowIfCancellationRequested();
                    }

                    if (!isOver && HasEnoughInFileLocked(minimumSize, out least))
                    {
                        unused = OpenFileLocked(least);
                        file = _file;
                    }
                    else if (!isOver)
                    {
                        wait = pipe.WaitLocked(cancellationToken);
                        spills = !IsInMemoryLocked && pipe.WantAllInFileLocked();
                    }
                }

                unused?.Complete();
                pipe.Spill(spills);
                if (isOver)
                {
                    return result;
                }

                if (wait is not null)
                {
                    await pipe.EndWaitAsync(wait, cancellationToken).ConfigureAwait(false);
                    continue;
                }

                result = await file!.ReadAtLeastAsync(least, cancellationToken).ConfigureAwait(false);
                lock (pipe.Gate)
                {
                    return FromFileLocked(result);
                }
            }
        }
        finally
        {
            lock (pipe.Gate)
            {
                _isReading = false;
            }
        }
    }

    /// <summary>Whether a read ends now, without the file: its result, or the error.</summary>
    /// <param name="minimumSize">The fewest bytes, if as many come.</param>
    /// <param name="result">The result.</param>
    /// <param name="unused">A reader of the file that is to be completed, without the lock.</param>
    private bool TryAnswerLocked(int minimumSize, out ReadResult result, out FilePipeReader? unused)
    {
        ThrowIfCompletedLocked();
        result = default;
        unused = null;
        if (_isCancelRequested)
        {
            // The reader of the file may have been asked, too.
            (unused, _file) = (_file, null);
            _isCancelRequested = false;
            result = new ReadResult(HoldAllLocked(), isCanceled: true, isCompleted: false);
            return true;
        }

        bool isInMemory = IsInMemoryLocked;
        long end = isInMemory ? pipe.FlushedLocked : pipe.WrittenLocked;
        bool hasMore = end > _examined;
        if (pipe.HasFailedLocked && !hasMore && (isInMemory || pipe.IsFileFinalLocked))
        {
            pipe.ThrowErrorLocked();
        }

        if (!isInMemory || !((hasMore && end - _consumed >= minimumSize) || pipe.IsOverLocked))
        {
            return false;
        }

        result = new ReadResult(HoldAllLocked(), isCanceled: false, isCompleted: pipe.IsOverLocked && !pipe.HasFailedLocked);
        return true;
    }

    /// <summary>Whether the file has what a read needs, and how many bytes that are at least.</summary>
    private bool HasEnoughInFileLocked(int minimumSize, out int least)
    {
        long there = pipe.WrittenLocked - _consumed;
        long wanted = Math.Max(minimumSize, _examined - _consumed + 1);
        bool isLast = pipe.IsOverLocked && pipe.IsFileFinalLocked;
        least = (int)Math.Min(int.MaxValue, isLast ? Math.Min(wanted, there) : wanted);
        return !IsInMemoryLocked && there >= least;
    }

    /// <summary>Makes the reader of the file reach as far as is needed. Returns one that is to be completed.</summary>
    private FilePipeReader? OpenFileLocked(int least)
    {
        if (_file?.Position == _consumed && _fileEnd - _consumed >= least && (_fileEnd == pipe.WrittenLocked || _fileEnd > _examined))
        {
            return null;
        }

        FilePipeReader? unused = _file;
        (_fileStart, _fileEnd) = (_consumed, pipe.WrittenLocked);
        _file = pipe.OpenFileReader(_fileStart, _fileEnd - _fileStart);
        return unused;
    }

    /// <summary>What the reader of the file has returned, as a result of this one.</summary>
    private ReadResult FromFileLocked(ReadResult result)
    {
        ThrowIfCompletedLocked();
        _hasFileBuffer = !result.Buffer.IsEmpty;
        _isCancelRequested &= !result.IsCanceled;
        bool isTruncated = result.IsCompleted && _consumed + result.Buffer.Length < _fileEnd;
        if (isTruncated && !result.IsCanceled && result.Buffer.Length <= _examined - _consumed)
        {
            throw FileBufferingPipe.Truncated();
        }

        bool isLast = result.IsCompleted && !isTruncated && pipe is { IsOverLocked: true, HasFailedLocked: false }
            && _fileEnd == pipe.FlushedLocked;
        return new ReadResult(result.Buffer, result.IsCanceled, isLast);
    }

    /// <summary>Advances what reads the file, which checks the positions. Runs a caller's pool, so it is called without the lock.</summary>
    private void AdvanceFile(FilePipeReader file, SequencePosition consumed, SequencePosition examined)
    {
        long seen = examined.GetObject() is FileSegment segment ? _fileStart + segment.RunningIndex + examined.GetInteger() : 0;
        file.AdvanceTo(consumed, examined);
        lock (pipe.Gate)
        {
            _hasFileBuffer = false;
            _consumed = file.Position;
            _examined = Math.Max(_consumed, seen);
        }
    }

    private ReadOnlySequence<byte> HoldAllLocked()
    {
        _held = IsInMemoryLocked && _consumed < pipe.FlushedLocked ? pipe.HoldLocked(_consumed, pipe.FlushedLocked) : default;
        return _held.Bytes;
    }

    private long IndexOfLocked(SequencePosition position)
    {
        if (position.GetObject() is FileSegment segment && segment.Chain == pipe)
        {
            long index = segment.RunningIndex + position.GetInteger();
            if (index >= _consumed && index <= _consumed + _held.Bytes.Length)
            {
                return index;
            }
        }

        throw new InvalidOperationException("The position does not belong to the buffer of this reader's last read.");
    }

    private void BeginLocked()
    {
        ThrowIfCompletedLocked();
        ThrowIfReadingLocked();
        if (_held.First is not null || _hasFileBuffer)
        {
            throw new InvalidOperationException("The buffer of the last read is in use: call AdvanceTo first.");
        }
    }

    private void ThrowIfCompletedLocked()
    {
        pipe.ThrowIfDisposedLocked();
        if (_isCompleted)
        {
            throw new InvalidOperationException("Reading is not allowed after the reader was completed.");
        }
    }

    private void ThrowIfReadingLocked()
    {
        if (_isReading)
        {
            throw new InvalidOperationException("Another read is pending: a reader serves one at a time.");
        }
    }
}
