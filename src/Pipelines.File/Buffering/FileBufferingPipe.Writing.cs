using Pipelines.File.Buffering;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File;

/// <content>The writer.</content>
public sealed partial class FileBufferingPipe
{
    private const int MinSegment = 4 * 1024;
    private const int MaxSegment = 64 * 1024;
    private const long PauseThreshold = FilePipeWriterOptions.DefaultPauseWriterThreshold;

    /// <summary>The most bytes that a write copies before it flushes.</summary>
    private const int MaxUnflushedWrite = 256 * 1024;

    /// <summary>
    /// What the pipe's writer shows. The bytes behind what was flushed, and the room for more, belong to its one caller, without a lock.
    /// </summary>
    private sealed class BufferWriter(FileBufferingPipe pipe) : PipeWriter
    {
        private FileSegment? _segment;

        // How many bytes of the segment are used, and how many were advanced over in all.
        private int _used;
        private long _advanced;

        public override bool CanGetUnflushedBytes => true;

        public override long UnflushedBytes => _advanced - pipe.Length;

        public override Memory<byte> GetMemory(int sizeHint = 0)
        {
            ArgumentOutOfRangeException.ThrowIfNegative(sizeHint);
            ThrowIfCompleted();
            return _segment is { } segment && segment.Capacity - _used >= Math.Max(sizeHint, 1) ? segment.Buffer[_used..]
                : Append(sizeHint);
        }

        public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

        public override void Advance(int bytes)
        {
            if (bytes < 0 || bytes > (_segment?.Capacity ?? 0) - _used)
            {
                throw new ArgumentOutOfRangeException(nameof(bytes), bytes, "More than the memory of GetMemory or GetSpan has left.");
            }

            _used += bytes;
            _advanced += bytes;
        }

        public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
        {
            ThrowIfCompleted();
            HandOver();
            try
            {
                return cancellationToken.IsCancellationRequested ? ValueTask.FromCanceled<FlushResult>(cancellationToken)
                    : pipe.TryEndFlush(isWaiting: false, out FlushResult result) ? new ValueTask<FlushResult>(result)
                    : pipe.WaitForFileAsync(cancellationToken);
            }
            catch (Exception e)
            {
                return ValueTask.FromException<FlushResult>(e);
            }
        }

        public override async ValueTask<FlushResult> WriteAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken = default)
        {
            while (true)
            {
                int length = Math.Min(source.Length, MaxUnflushedWrite);
                this.Write(source.Span[..length]);
                source = source[length..];
                FlushResult result;
                try
                {
                    result = await FlushAsync(cancellationToken).ConfigureAwait(false);
                }
                catch (OperationCanceledException)
                {
                    ShowRest(source.Span);
                    throw;
                }

                if (result.IsCanceled)
                {
                    ShowRest(source.Span);
                }

                if (source.IsEmpty || result.IsCanceled || result.IsCompleted)
                {
                    return result;
                }
            }
        }

        public override void CancelPendingFlush()
        {
            lock (pipe._gate)
            {
                pipe._isFlushCanceled = true;
            }

            pipe.Wake();
        }

        public override void Complete(Exception? exception = null)
        {
            if (TryComplete(exception))
            {
                lock (pipe._gate)
                {
                    if (exception is null)
                    {
                        pipe._error?.Throw();
                    }
                }
            }
        }

        public override async ValueTask CompleteAsync(Exception? exception = null)
        {
            if (TryComplete(exception))
            {
                await pipe.WaitForSpillAsync(throws: exception is null).ConfigureAwait(false);
            }
        }

        /// <summary>Whoever cancels a write ends its wait only: nothing of it is lost.</summary>
        private void ShowRest(ReadOnlySpan<byte> rest)
        {
            this.Write(rest);
            HandOver();
        }

        private void ThrowIfCompleted()
        {
            lock (pipe._gate)
            {
                pipe.ThrowIfDisposedLocked();
                if (pipe._isWriterCompleted)
                {
                    throw new InvalidOperationException("Writing is not allowed after the writer was completed.");
                }
            }
        }

        private bool TryComplete(Exception? exception)
        {
            lock (pipe._gate)
            {
                if (pipe._isWriterCompleted || pipe._isDisposed)
                {
                    return false;
                }
            }

            if (exception is null)
            {
                HandOver();
            }

            lock (pipe._gate)
            {
                pipe._error ??= exception is null ? null : ExceptionDispatchInfo.Capture(exception);
                pipe._isWriterCompleted = true;
            }

            pipe.Wake();
            return true;
        }

        /// <summary>Shows what was advanced over to the readers, and begins to write it to the file if it is time.</summary>
        private void HandOver()
        {
            FileSegment? freed;
            bool spills;
            lock (pipe._gate)
            {
                if (pipe._error is null && pipe._options.MaxLength is { } most && _advanced > most)
                {
                    pipe._error = ExceptionDispatchInfo.Capture(new BufferTooLongException(most));
                }

                if (pipe._error is not null || pipe._isDisposed || _advanced == pipe._flushed)
                {
                    return;
                }

                _segment!.SetEnd(_used);
                pipe._flushed = _advanced;
                freed = pipe.DropConsumedLocked(pipe.ConsumedLocked());
                pipe._isInFile |= pipe._flushed - pipe.ConsumedLocked() > pipe._options.MemoryThreshold;
                spills = pipe.TryBeginSpillLocked();
            }

            _ = SegmentPool.Shared.Return(freed);
            pipe.Spill(spills);
            pipe.Wake();
        }

        /// <summary>Appends a segment, because the room at hand is too small.</summary>
        private Memory<byte> Append(int sizeHint)
        {
            // Small for what is small, and as large as the writes to the file for what is large.
            int size = Math.Max(sizeHint, (int)Math.Clamp(_advanced, MinSegment, MaxSegment));
            FileSegment segment = pipe._options.Pool is not { } pool ? SegmentPool.Shared.Rent(size)
                : SegmentPool.Shared.Rent(size, sizeHint > pool.MaxBufferSize ? MemoryPool<byte>.Shared : pool);
            bool isRefused = segment.Capacity < sizeHint;
            lock (pipe._gate)
            {
                isRefused |= pipe._isDisposed;
                if (!isRefused)
                {
                    segment.Chain = pipe;
                    segment.Uses = 1;
                    segment.SetRunningIndex(_advanced);
                    _segment?.SetEnd(_used);
                    pipe._tail?.NextSegment = segment;
                    pipe._head ??= segment;
                    pipe._tail = _segment = segment;
                    _used = 0;
                }
            }

            if (isRefused)
            {
                _ = SegmentPool.Shared.Return(segment);
                ThrowIfCompleted();
                throw new InvalidOperationException("The memory pool returned less than is needed.");
            }

            return segment.Buffer;
        }
    }

    /// <summary>How far the one reader has come, if the pipe does not keep what it has consumed; else 0.</summary>
    private long ConsumedLocked() => _options.Keep ? 0 : ((BufferReader)Reader).ConsumedLocked;

    /// <summary>Whether a flush has not to wait, and its result.</summary>
    private bool TryEndFlush(bool isWaiting, out FlushResult result)
    {
        lock (_gate)
        {
            ThrowIfDisposedLocked();
            bool isCanceled = _isFlushCanceled;
            _isFlushCanceled = false;
            result = new FlushResult(isCanceled, isCompleted: !_options.Keep && ((BufferReader)Reader).IsCompletedLocked);
            if (isCanceled)
            {
                return true;
            }

            _error?.Throw();
            return !_isSpilling || (_file.Opened is not null
                && _flushed - Math.Max(_written, StartLocked) < (isWaiting ? PauseThreshold / 2 : PauseThreshold));
        }
    }

    private async ValueTask<FlushResult> WaitForFileAsync(CancellationToken cancellationToken)
    {
        while (true)
        {
            PendingResult<bool> wait;
            lock (_gate)
            {
                wait = WaitLocked(cancellationToken);
            }

            // Behind the wait, so that no change is missed. A wait that nobody awaits any more is ended by the next change.
            if (TryEndFlush(isWaiting: true, out FlushResult result))
            {
                return result;
            }

            await EndWaitAsync(wait, cancellationToken).ConfigureAwait(false);
            cancellationToken.ThrowIfCancellationRequested();
        }
    }
}
