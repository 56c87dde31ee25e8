namespace Pipelines.File.Writing;

/// <summary>
/// Refuses overlapping calls of one writer: while a call takes or flushes bytes, a second one throws and changes nothing. Calls that may
/// come from any thread do not count.
/// </summary>
internal struct CallsUnderWay
{
    // Interlocked: 1 while a call that takes or flushes bytes is running, else 0.
    private int _isInCall;

    // Interlocked: the number of running copies into the writer, also between their calls.
    private int _copies;

    /// <summary>Begins a call. It is a full fence: the caller's later reads are not moved before it.</summary>
    /// <exception cref="InvalidOperationException">Another call is running. Do not call <see cref="Leave"/> then.</exception>
    internal void Enter()
    {
        if (Interlocked.Exchange(ref _isInCall, 1) != 0)
        {
            throw Overlapping();
        }
    }

    internal void Leave() => Volatile.Write(ref _isInCall, 0);

    /// <summary>Throws if a call is running. For calls that are too short to be marked as running.</summary>
    internal readonly void ThrowIfAny()
    {
        if (Volatile.Read(in _isInCall) != 0)
        {
            throw Overlapping();
        }
    }

    /// <summary>Begins a copy into the writer, which makes several calls. The content is incomplete until <see cref="EndCopy"/>.</summary>
    internal void BeginCopy() => Interlocked.Increment(ref _copies);

    internal void EndCopy() => Interlocked.Decrement(ref _copies);

    /// <summary>
    /// Whether a call or a copy is running. Called after the writer is marked as completed: a call that begins later takes nothing.
    /// </summary>
    internal readonly bool IsAnyUnderWay()
    {
        // Pairs with the fence in Enter: either this sees the mark of the call, or the call sees that the writer is completed.
        Interlocked.MemoryBarrier();
        return Volatile.Read(in _isInCall) != 0 || Volatile.Read(in _copies) != 0;
    }

    private static InvalidOperationException Overlapping()
        => new("Another call of this writer is under way. Only one caller may use a writer at a time: await each WriteAsync, "
            + "or let threads take turns, for example with a SemaphoreSlim.");
}
