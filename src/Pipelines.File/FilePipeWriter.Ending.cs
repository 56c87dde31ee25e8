using Pipelines.File.IO;
using Pipelines.File.Threading;
using Pipelines.File.Writing;

namespace Pipelines.File;

/// <content>Ends the writer: Complete, Abort, Dispose.</content>
public sealed partial class FilePipeWriter
{
    /// <summary>
    /// Writes everything, closes the file, and throws if a byte could not be written. It blocks the thread until then: prefer
    /// <see cref="CompleteAsync"/>.
    /// </summary>
    /// <remarks>
    /// With <see cref="FilePipeWriterOptions.Pool"/> it may need a further thread of the application's pool, which runs the code of yours.
    /// Memory of <see cref="GetMemory"/> that you have not advanced over goes back to <see cref="FilePipeWriterOptions.Pool"/>. Do not use
    /// it any more.
    /// </remarks>
    /// <param name="exception">
    /// If it is not <see langword="null"/>, bytes that were not flushed are dropped. Flushed bytes are written all the same; only
    /// <see cref="Abort"/> drops them, too.
    /// </param>
    /// <exception cref="IOException">A write has failed, now or earlier. The file is closed.</exception>
    /// <exception cref="OperationCanceledException"><see cref="Abort"/> was called in the meantime.</exception>
    public override void Complete(Exception? exception = null)
    {
        bool wasAborted = BeginComplete(exception, mayWait: true);
        _loop.WaitForReleaseAsync().Wait();
        ThrowIfNotWhole(wasAborted);
    }

    /// <summary>Writes everything, closes the file, and throws if a byte could not be written.</summary>
    /// <inheritdoc cref="Complete"/>
    public override async ValueTask CompleteAsync(Exception? exception = null)
    {
        bool wasAborted = BeginComplete(exception, mayWait: false);
        await _loop.WaitForReleaseAsync().ConfigureAwait(false);
        ThrowIfNotWhole(wasAborted);
    }

    /// <summary>
    /// Ends the writer at once: bytes that are not written are dropped, and pending flushes end with
    /// <see cref="OperationCanceledException"/>. Any thread may call it, and it does not throw.
    /// </summary>
    /// <remarks>
    /// The file is closed when the last system call has ended. A pending <see cref="CompleteAsync"/> throws
    /// <see cref="OperationCanceledException"/>; a later one only waits until the file is closed. Neither waits for a write that may never
    /// end: to a terminal that is stopped, or to a pipe of <see cref="FilePipeBackend.Portable"/>. Memory of <see cref="GetMemory"/> that
    /// you hold is not reused.
    /// </remarks>
    public void Abort()
    {
        PendingResult<FlushResult>? flushes;
        FileRequest? running;
        bool wakes;
        lock (_loop)
        {
            if (!_loop.TryAbortLocked(out running))
            {
                return;
            }

            flushes = _flushes.TakeAll();
            wakes = _loop.TryWakeLocked();
        }

        if (running is not null)
        {
            _file.Opened.Cancel(running);
        }

        _loop.WakeIf(wakes);

        try
        {
            FlushWaiters.CompleteNow(flushes, default, flushes is null ? null : WriteLoop.AbortedException());
        }
        catch (Exception)
        {
            // An awaiter's SynchronizationContext or TaskScheduler has refused a continuation. Abort does not throw.
        }
    }

    /// <summary>
    /// Completes the writer if it is not completed. With <see cref="FilePipeWriterOptions.Replace"/> it calls <see cref="Abort"/> first, so
    /// only <see cref="CompleteAsync"/> makes the file appear.
    /// </summary>
    /// <inheritdoc cref="Complete"/>
    public void Dispose()
    {
        if (!IsCompleted)
        {
            AbortUnfinished();
            Complete();
        }
    }

    /// <inheritdoc cref="Dispose"/>
    public async ValueTask DisposeAsync()
    {
        if (IsCompleted)
        {
            await _loop.WaitForReleaseAsync().ConfigureAwait(false);
            return;
        }

        AbortUnfinished();
        await CompleteAsync().ConfigureAwait(false);
    }

    private void AbortUnfinished()
    {
        if (_file.IsUnfinished)
        {
            Abort();
        }
    }

    /// <summary>
    /// Completes the writer, unless it is completed already. With <paramref name="mayWait"/> this thread makes the calls. Returns whether
    /// the writer was aborted before this call.
    /// </summary>
    private bool BeginComplete(Exception? exception, bool mayWait)
    {
        bool wakes;
        lock (_loop)
        {
            if (IsCompleted)
            {
                return _loop.IsAborted;
            }

            // Before the check for a running call: a call that begins later takes nothing.
            _queue.Complete();
            bool isUnderWay = _calls.IsAnyUnderWay();
            if (exception is null && _file.IsUnfinished && isUnderWay)
            {
                // The content is incomplete, and only complete content gets the name.
                _loop.FailLocked(new InvalidOperationException("The writer was completed while a write or a copy into it was running, "
                    + "so its file is not whole and did not get its name. Await the write first."));
            }
            else if (exception is null)
            {
                _loop.HandOverLocked();
            }

            _loop.FinishLocked(isGivenUp: exception is not null, keepsRoom: isUnderWay);
            bool isShort = _options.FlushGuarantee != FlushGuarantee.Durable && _file.EndsInMemory(_queue.Flushed)
                && _loop.MayWriteHereLocked();
            wakes = _loop.TryWakeLocked(mayWait ? Here.All : isShort ? Here.Writes : Here.None);
        }

        _loop.WakeIf(wakes);
        return false;
    }

    private void ThrowIfNotWhole(bool wasAborted)
    {
        if (wasAborted)
        {
            return;
        }

        Exception? error;
        lock (_loop)
        {
            error = _loop.IsAborted ? throw WriteLoop.AbortedException() : _loop.Error;
        }

        if (error is not null)
        {
            _ = Failed(error).GetAwaiter().GetResult();
        }
    }
}
