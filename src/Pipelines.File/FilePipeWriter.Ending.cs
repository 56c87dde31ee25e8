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
    /// <para>It belongs to the writer's one caller, as every call but <see cref="Abort"/> and <see cref="CancelPendingFlush"/> does: while
    /// another thread is in a call of the writer, it throws and changes nothing.</para>
    /// <para>Do not use memory of <see cref="GetMemory"/> afterwards: that of a <see cref="FilePipeWriterOptions.Pool"/> of yours goes back
    /// to it, as with .NET's writer. Memory of the library's own pool that you have not advanced over, not even by 0 bytes, goes to nobody
    /// else. The writer cannot know who has kept memory that was advanced over, nor who is about to get some on another thread at this very
    /// moment; only <see cref="Abort"/> is safe then, which gives back none that you hold.</para>
    /// </remarks>
    /// <param name="exception">
    /// If it is not <see langword="null"/>, bytes that were not flushed are dropped. Flushed bytes are written all the same; only
    /// <see cref="Abort"/> drops them, too.
    /// </param>
    /// <exception cref="InvalidOperationException">Another thread is in a call of the writer. Nothing has changed.</exception>
    /// <exception cref="IOException">A write has failed, now or earlier. The file is closed.</exception>
    /// <exception cref="OperationCanceledException"><see cref="Abort"/> was called in the meantime.</exception>
    public override void Complete(Exception? exception = null)
    {
        bool wasAborted = BeginComplete(exception, mayWait: true);
        _loop.WaitForRelease();
        ThrowIfNotWhole(wasAborted);
    }

    /// <summary>Writes everything, closes the file, and throws if a byte could not be written.</summary>
    /// <inheritdoc cref="Complete"/>
    public override async ValueTask CompleteAsync(Exception? exception = null)
    {
        bool wasAborted = BeginComplete(exception, mayWait: false);
        await _loop.Released.ConfigureAwait(false);
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
        List<PendingResult<FlushResult>> flushes;
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
            FlushWaiters.CompleteNow(flushes, default, WriteLoop.AbortedException());
        }
        catch (Exception)
        {
            // An awaiter's SynchronizationContext or TaskScheduler has refused a continuation. Abort does not throw.
        }
    }

    /// <summary>
    /// Completes the writer if it is not completed. With <see cref="FilePipeWriterOptions.Replace"/> it calls <see cref="Abort"/> first, so
    /// only <see cref="CompleteAsync"/> makes the file appear; so it does not throw while another thread is in a call.
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
            await _loop.Released.ConfigureAwait(false);
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
        CallerMakes makes;
        lock (_loop)
        {
            if (IsCompleted)
            {
                return _loop.IsAborted;
            }

            EnterCall();
            if (exception is null)
            {
                _queue.FlushLocked();
            }

            _loop.FinishLocked(isGivenUp: exception is not null);
            LeaveCall();
            bool isShort = _options.FlushGuarantee != FlushGuarantee.Durable && _file.EndsInMemory(_queue.Flushed)
                && _loop.MayWriteHereLocked();
            makes = mayWait ? CallerMakes.Everything : isShort ? CallerMakes.Writes : CallerMakes.Nothing;
            wakes = _loop.TryWakeLocked();
        }

        _loop.WakeIf(wakes, makes);
        return false;
    }

    private void ThrowIfNotWhole(bool wasAborted)
    {
        if (!wasAborted && _loop.IsAborted)
        {
            throw WriteLoop.AbortedException();
        }

        if (!wasAborted && _loop.Error is { } error)
        {
            _ = Failed(error).GetAwaiter().GetResult();
        }
    }
}
