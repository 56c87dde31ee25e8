namespace Pipelines.File;

/// <summary>An append that waits until the journal takes its records. The journal's lock guards it.</summary>
/// <param name="pending">The records.</param>
internal sealed class QueuedAppend(PendingAppend pending)
{
    // Its awaiters run on the application's pool: it is completed under the lock.
    private readonly TaskCompletionSource<TakenAppend> _taken = new(TaskCreationOptions.RunContinuationsAsynchronously);

    // Guarded by the journal's lock.
    private bool _isRefused;

    internal PendingAppend Pending => pending;

    internal long Size { get; } = pending.Size;

    internal bool IsCanceled { get; private set; }

    internal Task<TakenAppend> Taken => _taken.Task;

    internal void Take(TakenAppend taken) => _taken.SetResult(taken);

    internal void Fail(Exception error) => _taken.TrySetException(error);

    /// <summary>Ends the append with an error of its own: the journal has not taken its records, and never will.</summary>
    internal void Refuse(Exception error)
    {
        _isRefused = true;
        Fail(error);
    }

    /// <summary>
    /// Cancels the append unless its records are taken, or the journal has failed. One that was refused is as good as canceled.
    /// </summary>
    internal bool TryCancelLocked()
    {
        IsCanceled = _taken.TrySetCanceled();
        return IsCanceled || _isRefused;
    }
}
