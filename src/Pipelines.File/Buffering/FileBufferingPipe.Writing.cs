using Pipelines.File.Buffering;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File;

/// <content>The writer: into memory up to the threshold, then into a <see cref="FilePipeWriter"/> of the file.</content>
public sealed partial class FileBufferingPipe
{
    private const int MinSegment = 4 * 1024;
    private const int MaxSegment = 64 * 1024;

    /// <summary>The fewest bytes that are worth a write, while nobody waits for them.</summary>
    private const int MinSpill = 64 * 1024;

    /// <summary>The most bytes that a write copies before it flushes.</summary>
    private const int MaxUnflushedWrite = 256 * 1024;

    /// <summary>A write to the file is over: its bytes can be read, or nothing more is written.</summary>
    internal void OnWritten(FileRequest request)
    {
        if (request.Error is { } error)
        {
            Fail(error);
        }
        else if (request.Kind == FileRequestKind.Write)
        {
            lock (_gate)
            {
                _written = Math.Max(_written, request.Offset + request.Transferred);
            }

            Wake();
        }
    }

    /// <summary>Nothing more comes into the file, and the rest of what was flushed is lost.</summary>
    private void Fail(Exception error)
    {
        lock (_gate)
        {
            _flushed = VisibleLocked;
            _error ??= error;
        }

        Wake();
    }

    /// <summary>What the pipe's writer shows. Its fields belong to its one caller.</summary>
    private sealed class BufferWriter(FileBufferingPipe pipe) : PipeWriter
    {
        // How many bytes of the last segment are used, and how many were advanced over in all.
        private int _used;
        private long _advanced;

        // A flush waits for the file to be made. Until then its caller has no place for more bytes: memory ends where the file begins.
        private bool _isOpening;

        public override bool CanGetUnflushedBytes => true;

        public override long UnflushedBytes => _advanced - pipe.Length;

        public override Memory<byte> GetMemory(int sizeHint = 0)
        {
            ArgumentOutOfRangeException.ThrowIfNegative(sizeHint);
            lock (pipe._gate)
            {
                ThrowIfCompletedLocked();

                // Not without the lock: Dispose may give the segment away, and another pipe may have it then.
                if (pipe._spill is null && pipe._tail is { } tail && tail.Capacity - _used >= Math.Max(sizeHint, 1))
                {
                    pipe._callerHasRoom = true;
                    return tail.Buffer[_used..];
                }
            }

            return pipe._spill is { } spill ? spill.GetMemory(sizeHint) : Append(sizeHint);
        }

        public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

        public override void Advance(int bytes)
        {
            if (pipe._spill is { } spill)
            {
                spill.Advance(bytes);
            }
            else if (bytes < 0 || bytes > (pipe._tail?.Capacity ?? 0) - _used)
            {
                lock (pipe._gate)
                {
                    // If the pipe was disposed meanwhile, the next call throws, as with FilePipeWriter.
                    if (pipe._isDisposed)
                    {
                        return;
                    }
                }

                throw new ArgumentOutOfRangeException(nameof(bytes), bytes, "More than the memory of GetMemory or GetSpan has left.");
            }

            _used += bytes;
            _advanced += bytes;
            Volatile.Write(ref pipe._callerHasRoom, false);
        }

        public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
            => FlushAsync(goesOn: false, cancellationToken);

        public override async ValueTask<FlushResult> WriteAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken = default)
        {
            while (true)
            {
                // Nothing more goes into memory or the file, whether or not the caller heeds errors.
                ThrowIfFailed(null);
                int length = (int)Math.Clamp(pipe._spill is null ? RoomInMemory : MaxUnflushedWrite, 0, source.Length);
                Copy(source.Span[..length]);
                source = source[length..];
                FlushResult result;
                try
                {
                    result = await FlushAsync(goesOn: !source.IsEmpty, cancellationToken).ConfigureAwait(false);
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
            // First the writer of the file, and then the flag, which makes the next flush ask it. Under the lock, so that a pipe that goes
            // on in a file just now sees one of both.
            lock (pipe._gate)
            {
                pipe._spill?.CancelPendingFlush();
                Volatile.Write(ref pipe._isFlushCanceled, true);
                _ = pipe._openingCanceled?.TrySetResult();
            }
        }

        public override void Complete(Exception? exception = null)
        {
            if (TryComplete(exception))
            {
                ThrowIfFailed(exception);
            }
        }

        public override async ValueTask CompleteAsync(Exception? exception = null)
        {
            if (TryComplete(exception))
            {
                await pipe._ending.ConfigureAwait(false);
                ThrowIfFailed(exception);
            }
        }

        /// <summary>How many bytes more may stay in memory; negative: too many do.</summary>
        private long RoomInMemory
        {
            get
            {
                lock (pipe._gate)
                {
                    return pipe._options.MemoryThreshold - (_advanced - pipe._start);
                }
            }
        }

        private void Copy(ReadOnlySpan<byte> source)
        {
            if (!source.IsEmpty)
            {
                this.Write(source);
            }
        }

        /// <summary>Whoever cancels a write ends its wait only: nothing of it is lost.</summary>
        private void ShowRest(ReadOnlySpan<byte> rest)
        {
            Copy(rest);
            Show();
        }

        private void ThrowIfCompletedLocked()
        {
            pipe.ThrowIfDisposedLocked();
            if (pipe._isWriterCompleted)
            {
                throw new InvalidOperationException("Writing is not allowed after the writer was completed.");
            }

            if (_isOpening)
            {
                throw new InvalidOperationException("A flush of this writer is under way, which goes on in a file. Await each flush.");
            }
        }

        private void ThrowIfFailed(Exception? completedWith)
        {
            lock (pipe._gate)
            {
                pipe.ThrowIfDisposedLocked();
                if (completedWith is null && pipe._error is { } error)
                {
                    ExceptionDispatchInfo.Throw(error);
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
                Show();
            }

            lock (pipe._gate)
            {
                pipe._error ??= exception;
            }

            // Bytes that were advanced over and not flushed get into the file, too, but nobody sees them. It begins before the writer
            // counts as completed: whoever saves the pipe then waits for it.
            pipe._ending = pipe._spill is { } spill ? EndAsync(spill) : Task.CompletedTask;
            lock (pipe._gate)
            {
                pipe._isWriterCompleted = true;
            }

            pipe.Wake();
            return true;
        }

        private async Task EndAsync(FilePipeWriter spill)
        {
            try
            {
                await spill.CompleteAsync().ConfigureAwait(false);
            }
            catch (Exception e)
            {
                pipe.Fail(e);
            }
        }

        /// <summary>Shows what was advanced over to the readers.</summary>
        private void Show()
        {
            FileSegment? freed = null;
            lock (pipe._gate)
            {
                if (pipe._error is null && pipe._options.MaxLength is { } most && _advanced > most)
                {
                    pipe._error = new BufferTooLongException(most);
                }

                if (pipe._error is null && !pipe._isDisposed)
                {
                    if (pipe._spill is null)
                    {
                        pipe._tail?.SetEnd(_used);
                    }

                    pipe._flushed = _advanced;
                    freed = pipe._isReaderGone ? pipe.DropBelowLocked(pipe._flushed) : null;
                }
            }

            _ = SegmentPool.Shared.Return(freed);
            pipe.Wake();
        }

        /// <summary>Shows the bytes, and hands them to the file if there is one, or if more is to come than memory takes.</summary>
        private ValueTask<FlushResult> FlushAsync(bool goesOn, CancellationToken cancellationToken)
        {
            lock (pipe._gate)
            {
                ThrowIfCompletedLocked();
            }

            Show();
            try
            {
                if (cancellationToken.IsCancellationRequested)
                {
                    return ValueTask.FromCanceled<FlushResult>(cancellationToken);
                }

                bool isCanceled = Interlocked.Exchange(ref pipe._isFlushCanceled, false);
                if (pipe._spill is { } spill)
                {
                    // If it is canceled, the writer of the file says so, too. For a reader that waits, others have flushed already.
                    return isCanceled || spill.UnflushedBytes >= MinSpill || spill.IsBehind
                        ? EndFlushAsync(spill.FlushAsync(cancellationToken))
                        : new ValueTask<FlushResult>(Result(false));
                }

                return !isCanceled && (goesOn || RoomInMemory < 0) ? OpenAsync(cancellationToken)
                    : new ValueTask<FlushResult>(Result(isCanceled));
            }
            catch (Exception e)
            {
                return ValueTask.FromException<FlushResult>(e);
            }
        }

        private FlushResult Result(bool isCanceled)
        {
            if (!isCanceled)
            {
                ThrowIfFailed(null);
            }

            return new FlushResult(isCanceled, isCompleted: pipe._isReaderGone);
        }

        private async ValueTask<FlushResult> EndFlushAsync(ValueTask<FlushResult> flush)
            => Result((await flush.ConfigureAwait(false)).IsCanceled);

        private async ValueTask<FlushResult> OpenAsync(CancellationToken cancellationToken)
        {
            Task<NamelessFile> opening;
            TaskCompletionSource canceled = new(TaskCreationOptions.RunContinuationsAsynchronously);
            ThrowIfFailed(null);
            lock (pipe._gate)
            {
                // Dispose looks for it under the lock.
                pipe.ThrowIfDisposedLocked();
                opening = pipe._opening
                    ??= WaitingThreads.Opens.RunAsync(() => NamelessFile.Make(pipe.Folder, pipe._calls));
                pipe._openingCanceled = canceled;
                if (pipe._isFlushCanceled)
                {
                    canceled.SetResult();
                }
            }

            _isOpening = true;
            try
            {
                // A flush that is canceled leaves the file to the next one, and its bytes in memory.
                if (await Task.WhenAny(opening, canceled.Task).WaitAsync(cancellationToken).ConfigureAwait(false) == opening)
                {
                    pipe.GoOnIn(await opening.ConfigureAwait(false));
                }
            }
            catch (IOException e)
            {
                pipe.Fail(e);
                throw;
            }
            finally
            {
                _isOpening = false;
            }

            return Result(Interlocked.Exchange(ref pipe._isFlushCanceled, false));
        }

        /// <summary>Appends a segment, because the room at hand is too small.</summary>
        private Memory<byte> Append(int sizeHint)
        {
            // Small for what is small. Pinned, because readers copy from it under the lock, where no code of a caller's pool may run.
            int size = Math.Max(sizeHint, (int)Math.Clamp(_advanced, MinSegment, MaxSegment));
            FileSegment segment = pipe._options.Pool is not { } pool ? SegmentPool.Shared.Rent(size)
                : SegmentPool.Shared.Rent(size, sizeHint > pool.MaxBufferSize ? MemoryPool<byte>.Shared : pool, pins: true);
            bool isRefused = segment.Capacity < sizeHint;
            Memory<byte> room = segment.Buffer;
            lock (pipe._gate)
            {
                isRefused |= pipe._isDisposed;
                if (!isRefused)
                {
                    segment.SetRunningIndex(_advanced);
                    pipe._tail?.SetEnd(_used);
                    pipe._tail?.NextSegment = segment;
                    pipe._head ??= segment;
                    pipe._tail = segment;
                    pipe._callerHasRoom = true;
                    _used = 0;
                }
            }

            if (isRefused)
            {
                _ = SegmentPool.Shared.Return(segment);
                lock (pipe._gate)
                {
                    pipe.ThrowIfDisposedLocked();
                }

                throw new InvalidOperationException("The memory pool returned less than is needed.");
            }

            return room;
        }
    }
}
