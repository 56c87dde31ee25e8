namespace Pipelines.File;

/// <summary>The waits that one reader, writer or copy uses again and again. A loop needs two: the next wait begins in the continuation of the one before.</summary>
/// <param name="counts">Whose counts are recorded before a wait that ends on another thread is over.</param>
internal sealed class PooledCompletions<TResult>(ICountsOwner? counts = null)
{
    // Guarded by this object.
    private PooledCompletion<TResult>? _free;

    internal ICountsOwner? Counts { get; } = counts;

    internal PooledCompletion<TResult> Rent()
    {
        lock (this)
        {
            if (_free is { } completion)
            {
                _free = completion.Next;
                completion.Next = null;
                return completion;
            }
        }

        return new PooledCompletion<TResult>(this);
    }

    /// <summary>Called by the completion itself when nobody uses it any more.</summary>
    internal void Return(PooledCompletion<TResult> completion)
    {
        lock (this)
        {
            completion.Next = _free;
            _free = completion;
        }
    }
}
