namespace Pipelines.File;

/// <summary>The waits that one reader, writer or copy uses again and again. A loop needs two: the next wait begins in the continuation of the one before.</summary>
internal sealed class PooledCompletions<TResult>
{
    // Guards _free.
    private readonly Lock _lock = new();
    private PooledCompletion<TResult>? _free;

    internal PooledCompletion<TResult> Rent()
    {
        lock (_lock)
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
        lock (_lock)
        {
            completion.Next = _free;
            _free = completion;
        }
    }
}
