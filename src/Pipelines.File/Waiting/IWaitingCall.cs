namespace Pipelines.File.Waiting;

/// <summary>A call that waits, or may: what <see cref="WaitingThreads"/> performs. One object is one call at a time, and may be used again and again.</summary>
internal interface IWaitingCall
{
    /// <summary>What it does next: asked when it is queued, and again where <see cref="Perform"/> says that there is more.</summary>
    WaitKind WaitKind { get; }

    /// <summary>The next one in the queue. Owned by <see cref="WaitingThreads"/>.</summary>
    IWaitingCall? NextCall { get; set; }

    /// <summary>When it was queued, a <see cref="System.Diagnostics.Stopwatch"/> timestamp. Owned by <see cref="WaitingThreads"/> while it is queued or performed.</summary>
    long QueuedAt { get; set; }

    /// <summary>
    /// Makes the call and reports what came of it, without running a caller's code. <see langword="true"/>: it has been set up again, and is to be performed again.
    /// </summary>
    bool Perform();
}
