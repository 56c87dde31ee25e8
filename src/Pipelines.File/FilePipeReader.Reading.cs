using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File;

// Performs the reads: on the caller's thread if they need no waiting, else on others, one after the other.
public sealed partial class FilePipeReader
{
    private ValueTask<ReadResult> ReadCoreAsync(int minimumSize, CancellationToken cancellationToken)
    {
        PendingResult<ReadResult>? wait = null;
        ReadResult result;
        Exception? error;
        lock (_buffer)
        {
            ThrowIfNotReadableLocked();
            if (cancellationToken.IsCancellationRequested)
            {
                return ValueTask.FromCanceled<ReadResult>(cancellationToken);
            }

            if (TryAnswerLocked(minimumSize, out result, out error))
            {
                return _buffer.Answer(result, error);
            }

            if (_stage == Stage.Waiting)
            {
                // A read is running already: a read-ahead, or one whose wait was canceled.
                _wait = wait = PendingResult<ReadResult>.Rent(_freeWaits ??= new(), cancellationToken);
            }
            else
            {
                BeginReadLocked(minimumSize, Stage.Trying);
            }

            _minimumSize = minimumSize;
        }

        if (wait is not null)
        {
            return wait.RegisterCancellation(s_onTokenCanceled, this, cancellationToken);
        }

        do
        {
            error = TryRent();
            if (error is null && !OpenedFile.TryPerform(_request!))
            {
                return HandOver(cancellationToken);
            }

            FilePipeMetrics.ReadsInline.Add(error is null ? 1 : 0);
        }
        while (EndRead(error, cancellationToken, out result, out error));
        return error is OperationCanceledException && cancellationToken.IsCancellationRequested
            ? ValueTask.FromCanceled<ReadResult>(cancellationToken) : _buffer.Answer(result, error);
    }

    /// <summary>
    /// Has a read that has to wait performed by another thread. After Complete, too: the system may have its memory already, and the end of
    /// the read releases everything. If a cancellation or Complete came meanwhile, the task is over, and nobody waits for the read.
    /// </summary>
    private ValueTask<ReadResult> HandOver(CancellationToken cancellationToken)
    {
        PendingResult<ReadResult>? wait = null;
        FileRequest? canceled = null;
        ReadResult result;
        Exception? error;
        lock (_buffer)
        {
            _stage = Stage.Waiting;
            if (TryAnswerLocked(_minimumSize, out result, out error))
            {
                canceled = UnwantedReadLocked();
            }
            else
            {
                _wait = wait = PendingResult<ReadResult>.Rent(_freeWaits ??= new(), cancellationToken);
            }
        }

        RunReads();
        CancelIf(canceled);
        return wait?.RegisterCancellation(s_onTokenCanceled, this, cancellationToken) ?? _buffer.Answer(result, error);
    }

    /// <summary>
    /// Records the result of the read that the current thread has performed. Sets the next one up if the pending ReadAsync needs more, or
    /// to read ahead. Returns whether this thread performs that, too; otherwise the pending ReadAsync is over.
    /// </summary>
    /// <param name="failure">What a caller's memory pool has thrown, so that the read was not performed.</param>
    /// <param name="cancellationToken">The token of a ReadAsync that is trying.</param>
    /// <param name="result">The result of the pending ReadAsync, if it is over.</param>
    /// <param name="error">Its error.</param>
    private bool EndRead(Exception? failure, CancellationToken cancellationToken, out ReadResult result, out Exception? error)
    {
        PendingResult<ReadResult>? wait = null;
        bool asksAgain = false;
        bool readsAhead = false;
        bool isTrying;
        bool releases;
        (result, error) = (default, failure);
        if (failure is not null)
        {
            _request!.FinishCanceled();
        }

        _buffer.ReturnUnfilled(_request!);
        lock (_buffer)
        {
            isTrying = _stage == Stage.Trying;
            _stage = Stage.Idle;
            _buffer.EndReadLocked(_request!);
            releases = _isCompleted;
            if (failure is null && (isTrying || _wait is not null) && !TryAnswerLocked(_minimumSize, out result, out error))
            {
                asksAgain = !cancellationToken.IsCancellationRequested;
                error = asksAgain ? null : new OperationCanceledException(cancellationToken);
            }

            if (asksAgain)
            {
                BeginReadLocked(_minimumSize, isTrying ? Stage.Trying : Stage.Waiting);
            }
            else
            {
                wait = TakeWaitLocked();
                readsAhead = failure is null && TryBeginReadAheadLocked();
            }
        }

        ReleaseIf(releases);
        if (isTrying)
        {
            RunReadsIf(readsAhead);
            return asksAgain;
        }

        wait?.CompleteOnPool(result, error);
        return asksAgain || readsAhead;
    }

    /// <summary>
    /// Rents and pins the memory of the read. Called without the lock by the owner of the request. Returns what a caller's memory pool
    /// throws: then the read is not performed, and the pending ReadAsync fails with that error.
    /// </summary>
    private Exception? TryRent()
    {
        try
        {
            _buffer.Rent(_request!);
            return null;
        }
        catch (Exception e)
        {
            return e;
        }
    }

    /// <summary>Sets a read up. <see cref="TryRent"/> adds the memory that it still lacks.</summary>
    private void BeginReadLocked(int minimumSize, Stage next)
    {
        if (_request is null)
        {
            _request = OpenedFile.Rent();
            _request.ResumesOnPool = _buffer.HasCallersPool;
        }

        _buffer.BeginReadLocked(_request, minimumSize);
        _stage = next;
    }

    /// <summary>Sets a read-ahead up if one is wanted. Then it is to be run.</summary>
    private bool TryBeginReadAheadLocked()
    {
        if (!_buffer.ReadsAhead || _stage != Stage.Idle || _isCompleted || !_buffer.WantsReadAheadLocked())
        {
            return false;
        }

        BeginReadLocked(0, Stage.Waiting);
        return true;
    }

    /// <summary>
    /// Has the read performed that was set up to wait or to read ahead, and those after it, until none is set up or another thread has one,
    /// whose end goes on. Called without the lock by whoever has set the first one up.
    /// </summary>
    private void RunReads()
    {
        Exception? failure;
        do
        {
            failure = TryRent();
            if (failure is null)
            {
                FilePipeMetrics.ReadsHandedOver.Add();
                Volatile.Write(ref _met, 0);
                OpenedFile.Run(_request!, this);
                if (Interlocked.Increment(ref _met) == 1)
                {
                    return;
                }
            }
        }
        while (EndRead(failure, default, out _, out _));
    }

    private void RunReadsIf(bool isDue)
    {
        if (isDue)
        {
            RunReads();
        }
    }

    /// <summary>
    /// A read is over. The thread that performed the call makes the next one, too; with a caller's memory pool it is one of the
    /// application's pool. A run that ends before <see cref="RunReads"/> has come back from its beginning goes on there: calls in calls
    /// would use the stack up.
    /// </summary>
    void IRequestOwner.OnEnded(FileRequest request)
    {
        if (Interlocked.Increment(ref _met) == 2)
        {
            RunReadsIf(EndRead(failure: null, default, out _, out _));
        }
    }
}
