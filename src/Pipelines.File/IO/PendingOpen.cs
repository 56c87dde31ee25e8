using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// Opens a file on a waiting thread. A FIFO whose other side is missing is tried again and again; no thread waits in between. A
/// cancellation ends the wait at once; a file that is opened all the same is closed.
/// </summary>
/// <typeparam name="T">The reader or writer of the file.</typeparam>
internal sealed class PendingOpen<T>(FifoOpening? fifo, Func<OpenedFile?, T> open, Action<T> close, CancellationToken cancellationToken)
    : IWaitingCall
    where T : class
{
    // Interlocked: whoever exchanges it for null completes the wait.
    private PendingResult<T>? _pending;

    WaitKind IWaitingCall.WaitKind => WaitKind.Open;

    long IWaitingCall.QueuedAt { get; set; }

    IWaitingCall? IWaitingCall.Next { get; set; }

    /// <summary>Begins to open the file.</summary>
    /// <param name="fifo">How the file is opened if it is a FIFO; <see langword="null"/>: as any other file.</param>
    /// <param name="open">
    /// Opens the file by its path, or takes the FIFO that is open. Called on a waiting thread. Its exception is the caller's.
    /// </param>
    /// <param name="close">Closes a result that nobody waits for any more. Called on a waiting thread.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    internal static ValueTask<T> StartAsync(FifoOpening? fifo, Func<OpenedFile?, T> open, Action<T> close,
        CancellationToken cancellationToken)
    {
        if (cancellationToken.IsCancellationRequested)
        {
            return ValueTask.FromCanceled<T>(cancellationToken);
        }

        PendingOpen<T> started = new(fifo, open, close, cancellationToken);
        PendingResult<T> pending = PendingResult<T>.Rent(cancellationToken);
        started._pending = pending;
        ValueTask<T> task = pending.EndWith(static (pending, _) => ((PendingOpen<T>)pending!).Cancel(), started, cancellationToken);
        WaitingThreads.Shared.Queue(started);
        return task;
    }

    void IWaitingCall.Perform()
    {
        T? opened = null;
        Exception? error = null;
        try
        {
            if (Volatile.Read(ref _pending) is not null)
            {
                OpenedFile? side = null;
                if (FileOpening.IsLinux && fifo is { IsForFifo: true } && (side = fifo.TryOpen()) is null)
                {
                    // Tried again soon. Not by a timer: if a timer needs another thread and no descriptor is left for it, the runtime ends
                    // the process.
                    DescriptorPoller.Shared.QueueLater(this);
                    return;
                }

                opened = open(side);
            }
        }
        catch (Exception e)
        {
            error = e;
        }

        fifo?.Dispose();
        if (Take() is { } pending)
        {
            pending.CompleteOnPool(opened!, error);
        }
        else if (opened is not null)
        {
            close(opened);
        }
    }

    private PendingResult<T>? Take() => Interlocked.Exchange(ref _pending, null);

    private void Cancel()
    {
        if (Take() is not { } pending)
        {
            return;
        }

        if (FileOpening.IsLinux && fifo is not null && DescriptorPoller.Shared.TryRemove(this))
        {
            // Closed at once, so that no writer takes this for a reader. A running try closes it itself.
            fifo.Dispose();
        }

        // Last, because it throws what the awaiter's SynchronizationContext throws.
        pending.CompleteNow(null!, new OperationCanceledException(cancellationToken));
    }
}
