using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.Backends;

/// <summary>An operation of <see cref="ThreadPoolBackend"/>: it is the work item that performs it, and what <see cref="DescriptorPoller"/> waits for.</summary>
internal sealed class ThreadPoolOperation : FileOperation, IThreadPoolWorkItem
{
    private static readonly OperationPool<ThreadPoolOperation> s_pool = new();

    private ThreadPoolBackend? _backend;

    /// <summary>The generation that was canceled while it did not wait. Guarded by the poller's lock.</summary>
    internal int CanceledGeneration { get; set; } = -1;

    // What it waits for; guarded by the poller's lock while it waits there.

    /// <summary>Tells this wait from a later one of the same operation; 0 while it does not wait.</summary>
    internal long WaitTicket { get; set; }

    internal SafeFileHandle? WaitFile { get; set; }

    internal int WaitDescriptor { get; set; }

    /// <summary>POLLIN or POLLOUT.</summary>
    internal short WaitEvents { get; set; }

    internal static ThreadPoolOperation Rent(ThreadPoolBackend backend, IFileOperationOwner owner)
    {
        ThreadPoolOperation operation = s_pool.TryPop() ?? new ThreadPoolOperation();
        operation._backend = backend;
        operation.Lend(owner);
        return operation;
    }

    /// <summary>The descriptor that the operation waited for can be read or written.</summary>
    internal void OnReady() => Queue();

    internal void Queue() => ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);

    void IThreadPoolWorkItem.Execute() => _backend!.PerformAndReport(this);

    protected override void Recycle()
    {
        _backend = null;
        if (IsPoolable)
        {
            s_pool.Push(this);
        }
    }
}
