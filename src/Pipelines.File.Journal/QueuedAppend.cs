namespace Pipelines.File;

/// <summary>An append that waits until the journal takes its record. The journal's lock guards it.</summary>
/// <param name="record">The caller's bytes, which do not change until the append has ended.</param>
/// <param name="crc">Their CRC.</param>
internal sealed class QueuedAppend(ReadOnlyMemory<byte> record, uint crc)
{
    // Its awaiters run on the application's pool: it is completed under the lock.
    private readonly TaskCompletionSource<TakenAppend> _taken = new(TaskCreationOptions.RunContinuationsAsynchronously);

    internal ReadOnlyMemory<byte> Record => record;

    internal uint Crc => crc;

    internal bool IsCanceled { get; private set; }

    internal Task<TakenAppend> Taken => _taken.Task;

    internal void Take(TakenAppend taken) => _taken.SetResult(taken);

    internal void Fail(Exception error) => _taken.TrySetException(error);

    /// <summary>Cancels the append unless its record is taken, or the journal has failed.</summary>
    internal bool TryCancelLocked()
    {
        IsCanceled = _taken.TrySetCanceled();
        return IsCanceled;
    }
}
