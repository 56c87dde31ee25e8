namespace Pipelines.File.Threading;

/// <summary>
/// A call that may block, for <see cref="WaitingThreads"/> to perform. An object is one call at a time, and may be queued again after each.
/// </summary>
internal interface IWaitingCall
{
    /// <summary>
    /// Makes the call and completes its wait, without running a caller's code. The object may be queued again before this returns.
    /// </summary>
    void Perform();
}
