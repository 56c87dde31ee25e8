using Pipelines.File.Threading;

namespace FilePipelines.Child;

/// <summary>A call that a waiting thread performs.</summary>
public sealed class QueuedCall(Action perform) : IWaitingCall
{
    void IWaitingCall.Perform() => perform();
}
