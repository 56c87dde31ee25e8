namespace FilePipelinesBenchmarks.Waiting;

/// <summary>One of those that operate at once: its file is open from the constructor until it is disposed.</summary>
internal abstract class WaitingWorker : IAsyncDisposable
{
    /// <summary>One operation: done when its bytes are here, or on the device.</summary>
    internal abstract ValueTask OperateAsync();

    public abstract ValueTask DisposeAsync();
}
