using Pipelines.File.Waiting;

namespace Pipelines.File.Backends;

/// <summary>An operation of <see cref="ThreadPoolBackend"/>: what a waiting thread performs, and what waits for its descriptor before.</summary>
internal sealed class ThreadPoolOperation : FileOperation, IDescriptorWaiter
{
    private static readonly OperationPool<ThreadPoolOperation> s_pool = new();

    private ThreadPoolBackend? _backend;

    private ThreadPoolOperation() => Wait = new DescriptorWait(this);

    /// <summary>Where it waits for its descriptor; the poller guards it.</summary>
    internal DescriptorWait Wait { get; }

    /// <summary>A read that nobody has tried yet: it is tried without waiting, on a thread of the application's, before it waits. Owned as the operation is.</summary>
    internal bool TriesFirst { get; set; }

    /// <summary>Whether the last call was one that did not wait. Written before it is reported.</summary>
    internal bool WasTried { get; set; }

    /// <summary>The use of the operation that was tried on its owner's thread.</summary>
    internal int TriedGeneration { get; set; } = -1;

    protected override WaitKind WaitKind => TriesFirst ? WaitKind.TryRead : base.WaitKind;

    int IDescriptorWaiter.Generation => Generation;

    internal static ThreadPoolOperation Rent(ThreadPoolBackend backend, IFileOperationOwner owner)
    {
        ThreadPoolOperation operation = s_pool.TryPop() ?? new ThreadPoolOperation();
        operation._backend = backend;
        operation.Lend(owner);
        return operation;
    }

    void IDescriptorWaiter.OnReady() => _backend!.OnReady(this);

    protected override bool Perform() => _backend!.PerformAndReport(this);

    protected override void QueueAgain()
    {
        _backend!.OnSetUpAgain(this);
        Queue();
    }

    protected override void Recycle()
    {
        _backend = null;
        if (IsPoolable)
        {
            s_pool.Push(this);
        }
    }
}
