using Pipelines.File.Diagnostics;

namespace Pipelines.File.Threading;

/// <summary>
/// The pool of waits of one reader, writer or copy. A caller's loop uses two of them: it begins the next wait in the continuation of the
/// last one.
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

        Probe.Allocating();
        return new PendingResult<TResult>(this);
    }

    /// <summary>Called by the wait itself, when both its result was set and it was taken.</summary>
    internal void Return(PendingResult<TResult> pending)
    {
        lock (this)
        {
            Debug.Assert(pending.Next is null);
            pending.Next = _free;
            _free = pending;
        }
    }
}
