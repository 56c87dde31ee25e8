using System.IO.Pipelines;
using Pipelines.File.IO;
using Pipelines.File.Threading;
using Pipelines.File.Writing;

namespace Pipelines.File;

/// <content>How a writer ends.</content>
public sealed partial class FilePipeWriter
{
    /// <summary>
    /// Writes out everything, closes the file, and throws if any byte could not be written. Blocks until then: prefer <see cref="CompleteAsync"/>.
    /// </summary>
    /// <remarks>Memory of <see cref="GetMemory"/> that nobody has advanced over goes back to <see cref="FilePipeWriterOptions.Pool"/>, and must not be used any more.</remarks>
    /// <param name="exception">Anything but <see langword="null"/> drops what was not flushed; what was flushed is written all the same. <see cref="Abort"/> drops that, too.</param>
    /// <exception cref="IOException">A write has failed, now or earlier. The file is closed.</exception>
    /// <exception cref="OperationCanceledException"><see cref="Abort"/> came meanwhile.</exception>
    public override void Complete(Exception? exception = null)
    {
        bool wasAborted = BeginComplete(exception, performsHere: true);
        _loop.WaitForRelease();
        ThrowIfNotWhole(wasAborted);
    }

    /// <summary>Writes out everything, closes the file, and throws if any byte could not be written.</summary>
    /// <inheritdoc cref="Complete"/>
    public override async ValueTask CompleteAsync(Exception? exception = null)
    {
        bool wasAborted = BeginComplete(exception, performsHere: false);
        await _loop.WaitForReleaseAsync().ConfigureAwait(false);
        ThrowIfNotWhole(wasAborted);
    }

    /// <summary>
    /// Gives up at once: pending flushes, and whoever waits for the writer's completion, get an <see cref="OperationCanceledException"/>, what is not written is dropped,
    /// and the file is closed when the system is done with it. <see cref="CompleteAsync"/> afterwards only waits for that, unless it may never come (a terminal that is stopped,
    /// a pipe of <see cref="FilePipeBackend.Portable"/>). May come from any thread, and does not throw. Memory of <see cref="GetMemory"/> that is in use stays the caller's.
    /// </summary>
    public void Abort()
    {
        PendingResult<FlushResult>? flushes;
        Cancellation cancellation;
        bool runs;
        lock (_loop)
        {
            if (!_loop.TryAbortLocked(out cancellation))
            {
                return;
            }

            flushes = _flushes.TakeAll();
            runs = _loop.TryRunLocked();
        }

        cancellation.Request(_file.Opened);
        _loop.Run(runs);

        try
        {
            FlushWaiters.CompleteNow(flushes, default, flushes is null ? null : AbortedException());
        }
        catch (Exception)
        {
            // What an awaiter's SynchronizationContext or TaskScheduler throws instead of taking the continuation is not the concern of whoever gives up.
        }
    }

    /// <summary>
    /// Completes a writer that is not completed; with <see cref="FilePipeWriterOptions.Replace"/> gives up as <see cref="Abort"/> does, so that only
    /// <see cref="CompleteAsync"/> makes the file appear.
    /// </summary>
    /// <inheritdoc cref="Complete"/>
    public void Dispose()
    {
        if (!IsCompleted)
        {
            GiveUpUnfinished();
            Complete();
        }
    }

    /// <inheritdoc cref="Dispose"/>
    public ValueTask DisposeAsync()
    {
        if (IsCompleted)
        {
            return _loop.WaitForReleaseAsync();
        }

        GiveUpUnfinished();
        return CompleteAsync();
    }

    internal static OperationCanceledException AbortedException() => new("The writer was aborted.");

    private void GiveUpUnfinished()
    {
        if (_file.IsUnfinished)
        {
            Abort();
        }
    }

    /// <summary>Whether the writer was aborted before; where it is completed already, nothing is begun.</summary>
    private bool BeginComplete(Exception? exception, bool performsHere)
    {
        bool runs;
        lock (_loop)
        {
            if (IsCompleted)
            {
                return _loop.IsAborted;
            }

            // Before it is looked at whether a call is under way: one that begins later takes nothing.
            bool isDurable = _options.FlushGuarantee == FlushGuarantee.Durable;
            _loop.CompleteLocked();
            bool isUnderWay = _calls.IsAnyUnderWay();
            if (exception is null && _file.IsUnfinished && isUnderWay)
            {
                // What is there is a part of what was to be: the name is for the whole only.
                _loop.FailLocked(new InvalidOperationException("The writer was completed while a write or a copy into it was under way, so its file is not whole and has not got its name. Await that first."));
            }
            else if (exception is null)
            {
                _loop.HandOverLocked();
            }

            _loop.FinishLocked(isDurable, isGivenUp: exception is not null, keepsRoom: isUnderWay || _options.Pool is null);
            runs = _loop.TryRunLocked();
        }

        _loop.Run(runs, performsHere);

        return false;
    }

    private void ThrowIfNotWhole(bool wasAborted)
    {
        Exception? error;
        lock (_loop)
        {
            if (_loop.IsAborted && !wasAborted)
            {
                throw AbortedException();
            }

            error = wasAborted ? null : _loop.Error;
        }

        if (error is not null)
        {
            _ = Failed(error).GetAwaiter().GetResult();
        }
    }
}
