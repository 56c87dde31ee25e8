using Pipelines.File.Diagnostics;

namespace Pipelines.File.Threading;

/// <summary>A work item of the application's pool that somebody waits for, and that must run nowhere else.</summary>
internal static class PoolItem
{
    /// <summary>Queues it. Never throws: while memory is out, it tries again.</summary>
    internal static void Queue(IThreadPoolWorkItem item, bool preferLocal)
    {
        while (!TryQueue(item, preferLocal))
        {
            Probe.Rare("no memory for a work item");
            Thread.Sleep(1);
        }
    }

    private static bool TryQueue(IThreadPoolWorkItem item, bool preferLocal)
    {
        try
        {
            Probe.Allocating();
            ThreadPool.UnsafeQueueUserWorkItem(item, preferLocal);
            return true;
        }
        catch (OutOfMemoryException)
        {
            return false;
        }
    }
}
