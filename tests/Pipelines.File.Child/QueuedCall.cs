using Pipelines.File.Threading;

namespace FilePipelinesChild;

/// <summary>A call that only counts.</summary>
internal sealed class QueuedCall(CountdownEvent performed) : IWaitingCall
{
    public WaitKind WaitKind => WaitKind.Sync;

    public void Perform() => performed.Signal();
}
