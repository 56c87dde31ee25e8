using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// A file that is being opened: by a waiting thread, and where it is a FIFO without its other side, again and again; no thread waits in
/// between. A cancellation ends the wait at once; what is opened all the same is closed again.
/// </summary>
/// <typeparam name="T">The reader or writer that is put on the file.</typeparam>
internal sealed class PendingOpen<T>(FifoOpening? fifo, Func<OpenedFile?, T> open, Action<T> close, CancellationToken cancellationToken)
    : IWaitingCall
    where T : class
{
    // Owned by the waiting thread, as the FIFO is.
    private bool _isFifo;

    // Interlocked: whoever sets it to null completes it.
    private PendingResult<T>? _pending;

    WaitKind IWaitingCall.WaitKind => WaitKind.Open;

    long IWaitingCall.QueuedAt { get; set; }

    /// <summary>Begins to open.</summary>
    /// <param name="fifo">How it is opened if it turns out to be a FIFO; <see langword="null"/>: as any other file.</param>
    /// <param name="open">Opens the file by its path, or takes the FIFO that is open; on a waiting thread. Throws what the caller is to
    /// get.</param>
    /// <param name="close">Closes what nobody waits for any more; on a waiting thread.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    internal static ValueTask<T> StartAsync(FifoOpening? fifo, Func<OpenedFile?, T> open, Action<T> close,
        CancellationToken cancellationToken)
    {
        if (cancellationToken.IsCancellationRequested)
        {
            return ValueTask.FromCanceled<T>(cancellationToken);
        }

        PendingOpen<T> started = new(fifo, open, close, cancellationToken);
        PendingResult<T> pending = new PendingResultPool<T>().Rent();
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
            if (Volatile.Read(ref _pending) is not null && !TryOpen(out opened))
            {
                return;
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

    /// <summary><see langword="false"/>: the FIFO's other side is not there yet, and is asked for again in a moment.</summary>
    private bool TryOpen(out T? opened)
    {
        opened = null;
        if (fifo is null || !(_isFifo = _isFifo || fifo.IsForFifo))
        {
            opened = open(null);
            return true;
        }

        OpenedFile? side = fifo.TryOpen(out bool isForOrdinaryWay);
        if (side is not null || isForOrdinaryWay)
        {
            opened = open(side);
            return true;
        }

        // Not by a timer: the runtime ends the process where it wants one more thread for it and there is no descriptor left.
        DescriptorPoller.Shared.QueueLater(this);
        return false;
    }

    private PendingResult<T>? Take() => Interlocked.Exchange(ref _pending, null);

    private void Cancel()
    {
        if (Take() is not { } pending)
        {
            return;
        }

        if (fifo is not null && DescriptorPoller.Shared.TryRemove(this))
        {
            // At once, so that nobody on the other side takes this for a reader. A look that is under way does it itself.
            fifo.Dispose();
        }

        // Last, as it throws what the awaiter's SynchronizationContext throws.
        pending.CompleteNow(null!, new OperationCanceledException(cancellationToken));
    }
}
