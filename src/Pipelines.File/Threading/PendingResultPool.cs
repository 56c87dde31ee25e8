namespace Pipelines.File.Threading;

/// <summary>
/// The waits that one reader, writer or copy uses again and again. A loop needs two: the next wait begins in the continuation of the one
/// before.
/// </summary>
internal sealed class PendingResultPool<TResult>
{
    // Guarded by this object.
    private PendingResult<TResult>? _free;

    internal PendingResult<TResult> Rent()
    {
        lock (this)
        {
            if (_free is { } pending)
            {
                _free = pending.Next;
                pending.Next = null;
                return pending;
            }
        }

        return new PendingResult<TResult>(this);
    }

    /// <summary>Called by the wait itself when nobody uses it any more.</summary>
    internal void Return(PendingResult<TResult> pending)
    {
        lock (this)
        {
            pending.Next = _free;
            _free = pending;
        }
    }
}
