using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File;

// Cancels reads, and ends the reader.
public sealed partial class FilePipeReader
{
    /// <summary>
    /// Makes the pending read, or else the next one, return at once with <see cref="ReadResult.IsCanceled"/>. Bytes that the system is
    /// still reading are not lost: a later read returns them. A pending copy ends with <see cref="OperationCanceledException"/>.
    /// </summary>
    public override void CancelPendingRead()
    {
        FileRequest? canceled = null;
        PendingResult<ReadResult>? wait;
        ReadResult result = default;
        lock (_buffer)
        {
            _buffer.IsCancelRequested = true;
            wait = TakeWaitLocked();
            if (wait is not null)
            {
                result = _buffer.TakeResultLocked();
                canceled = UnwantedReadLocked();
            }
        }

        CancelIf(canceled);
        wait?.CompleteNow(result, error: null);
    }

    /// <summary>
    /// Ends the reader and closes the file. A pending read ends at once with <see cref="InvalidOperationException"/>. This method does not
    /// wait for a system call that still runs; the call's end releases memory and handle. Nor does it close what may take long: a thread of
    /// the library closes a file that was deleted, or that a server has.
    /// </summary>
    /// <remarks>
    /// A buffer that you still hold is not reused: it stays as it is, and the garbage collector takes the memory. The memory of a pool of
    /// yours (<see cref="FilePipeReaderOptions.Pool"/>) is given back to it at once, as the reader of
    /// <see cref="PipeReader.Create(Stream, StreamPipeReaderOptions?)"/> does.
    /// </remarks>
    /// <param name="exception">Ignored, because no writer is there to see it.</param>
    public override void Complete(Exception? exception = null)
    {
        FileRequest? canceled;
        PendingResult<ReadResult>? wait;
        bool releases;
        lock (_buffer)
        {
            if (_isCompleted)
            {
                return;
            }

            _isCompleted = true;
            wait = TakeWaitLocked();
            canceled = UnwantedReadLocked();

            // In the other stages the owner of the request releases everything when its call is over.
            releases = _stage == Stage.Idle;
        }

        Exception? poolError = ReleaseIf(releases);
        CancelIf(canceled);
        wait?.CompleteNow(default, CompletedMeanwhileException());
        if (poolError is not null)
        {
            ExceptionDispatchInfo.Throw(poolError);
        }
    }

    /// <summary>
    /// Ends the reader as <see cref="Complete"/> does, and completes when memory and handle are released. It waits for a system call that
    /// still runs, unless that may never end (a pipe with <see cref="FilePipeBackend.Portable"/>): then the call's end releases them.
    /// </summary>
    /// <param name="exception">Ignored, because no writer is there to see it.</param>
    public override ValueTask CompleteAsync(Exception? exception = null)
    {
        try
        {
            Complete(exception);
        }
        catch (Exception e)
        {
            return ValueTask.FromException(e);
        }

        lock (_buffer)
        {
            // Also while it is tried: its owner then hands it over, after Complete, too.
            bool mayNeverEnd = _stage != Stage.Idle && !OpenedFile.EndsReads;
            return _isReleased || mayNeverEnd ? default
                : new ValueTask((_release ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task);
        }
    }

    /// <inheritdoc cref="Complete"/>
    public void Dispose() => Complete();

    /// <inheritdoc cref="CompleteAsync"/>
    public ValueTask DisposeAsync() => CompleteAsync();

    private void OnTokenCanceled(CancellationToken token)
    {
        FileRequest? canceled;
        PendingResult<ReadResult>? wait;
        lock (_buffer)
        {
            // A late cancellation may meet a later wait: if that has the same token, it ends, too.
            wait = _wait?.CancellationToken == token ? TakeWaitLocked() : null;
            canceled = wait is null ? null : UnwantedReadLocked();
        }

        CancelIf(canceled);
        wait?.CompleteNow(default, new OperationCanceledException(token));
    }

    /// <summary>
    /// Releases memory and handle, if that is due: once, by the thread that found under the lock that the reader is completed and no call
    /// is running. Called without the lock. Returns what a caller's memory pool threw.
    /// </summary>
    private Exception? ReleaseIf(bool isDue)
    {
        if (!isDue)
        {
            return null;
        }

        FileSegment? freed;
        FileRequest? request;
        bool isShort;
        lock (_buffer)
        {
            isShort = _buffer.IsShortFile;
            freed = _buffer.ReleaseLocked();
            request = _request;
            _request = null;
        }

        if (request is not null)
        {
            OpenedFile.Return(request);
        }

        Exception? poolError = SegmentPool.Shared.Return(freed);
        if (OpenedFile.SharesPosition)
        {
            OpenedFile.SetPosition(Position);
        }

        if (!_leaveOpen && OpenedFile.IsClosedElsewhere(isShort))
        {
            _ = WaitingThreads.Opens.RunAsync(Close);
        }
        else
        {
            Close();
        }

        return poolError;
    }

    private bool Close()
    {
        OpenedFile.Release(closeHandle: !_leaveOpen);
        lock (_buffer)
        {
            _isReleased = true;

            // Its continuations go to the pool, so no caller's code runs here.
            _release?.TrySetResult();
        }

        return true;
    }

    /// <summary>
    /// The running read, for which nobody waits any more; <see langword="null"/>: none. A read-ahead is wanted until Complete.
    /// </summary>
    private FileRequest? UnwantedReadLocked() => _stage == Stage.Waiting && (_isCompleted || !_buffer.ReadsAhead) ? _request : null;

    private void CancelIf(FileRequest? unwanted)
    {
        if (unwanted is not null)
        {
            OpenedFile.Cancel(unwanted);
        }
    }
}
