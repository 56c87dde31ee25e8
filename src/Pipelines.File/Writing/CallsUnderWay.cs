namespace Pipelines.File.Writing;

/// <summary>
/// The calls of one writer that take bytes: one at a time, so that a second one at once is told, and changes nothing. Calls that may come
/// from any thread are not among them.
/// </summary>
internal struct CallsUnderWay
{
    // Interlocked: 1 while a call is under way that takes bytes or flushes them.
    private int _isInCall;

    // Interlocked: copies into the writer that are under way, from one of their calls to the next.
    private int _copies;

    /// <summary>A call begins. Has a fence: what the caller looks at behind it is not older.</summary>
    /// <exception cref="InvalidOperationException">Another one is under way: <see cref="Leave"/> must not follow.</exception>
    internal void Enter()
    {
        if (Interlocked.Exchange(ref _isInCall, 1) != 0)
        {
            throw Overlapping();
        }
    }

    internal void Leave() => Volatile.Write(ref _isInCall, 0);

    /// <summary>For calls that are so short that they only look.</summary>
    internal readonly void ThrowIfAny()
    {
        if (Volatile.Read(in _isInCall) != 0)
        {
            throw Overlapping();
        }
    }

    /// <summary>A copy into the writer begins, which takes several of its calls: it is not whole until <see cref="EndCopy"/>.</summary>
    internal void BeginCopy() => Interlocked.Increment(ref _copies);

    internal void EndCopy() => Interlocked.Decrement(ref _copies);

    /// <summary>
    /// Whether a call or a copy is under way. Asked once the writer is completed: a call that begins later takes nothing.
    /// </summary>
    internal readonly bool IsAnyUnderWay()
    {
        // Enter has a fence between its mark and its look at whether the writer is completed; this is the other side's.
        Interlocked.MemoryBarrier();
        return Volatile.Read(in _isInCall) != 0 || Volatile.Read(in _copies) != 0;
    }

    private static InvalidOperationException Overlapping()
        => new("Another call of this writer is under way. Only one caller may use a writer at a time: await each WriteAsync, or let threads take turns, for example with a SemaphoreSlim.");
}
