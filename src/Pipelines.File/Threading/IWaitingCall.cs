namespace Pipelines.File.Threading;

/// <summary>
/// A call that waits, or may: what <see cref="WaitingThreads"/> performs. One object is one call at a time, and may be queued again and
/// again.
/// </summary>
internal interface IWaitingCall
{
    /// <summary>What it waits for. Does not change while it is queued.</summary>
    WaitKind WaitKind { get; }

    /// <summary>Whether somebody waits for it: mostly the caller who queues it.</summary>
    bool IsAwaited => false;

    /// <summary>
    /// When it was queued, a <see cref="System.Diagnostics.Stopwatch"/> timestamp. Owned by <see cref="WaitingThreads"/> until
    /// <see cref="Perform"/>.
    /// </summary>
    long QueuedAt { get; set; }

    /// <summary>
    /// Makes the call and tells who waits for it, without running a caller's code. It may be queued again before this returns.
    /// </summary>
    void Perform();
}
