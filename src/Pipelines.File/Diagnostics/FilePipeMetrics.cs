using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.Diagnostics;

/// <summary>
/// The meter "Pipelines.File". Every instrument is observable: a listener asks for what was counted, on a thread of its own. So counting
/// calls nobody, and may happen anywhere, also under a lock and on the library's own threads.
/// </summary>
internal static partial class FilePipeMetrics
{
    // Interlocked, each by itself: a listener may see a read whose bytes are not counted yet.
    private static long s_readsInline;
    private static long s_readsHandedOver;
    private static long s_bytesRead;
    private static long s_writes;
    private static long s_bytesWritten;
    private static long s_flushesCoalesced;
    private static long s_flushesPaused;
    private static long s_syncs;
    private static long s_poolAllocated;
    private static long s_poolReleased;

    // By kind of wait: calls that have ended, and stopwatch ticks from queueing to the end.
    private static readonly long[] s_waits = new long[(int)WaitKind.Look + 1];
    private static readonly long[] s_waitTicks = new long[(int)WaitKind.Look + 1];

    /// <summary>
    /// What is counted first has the meter made, on a thread of the pool: that takes as long as all else that the first file of a process
    /// needs, and whoever listens is told of what was counted before as well.
    /// </summary>
    static FilePipeMetrics() => ThreadPool.UnsafeQueueUserWorkItem(
        static _ =>
        {
            try
            {
                MakeMeter();
            }
            catch (TypeInitializationException)
            {
                // A listener has thrown, which is called when the meter is made. Files are read and written without it.
            }
        },
        null);

    internal static void HandedOver(FileRequestKind kind)
    {
        if (kind == FileRequestKind.Read)
        {
            Interlocked.Increment(ref s_readsHandedOver);
        }
    }

    internal static void ReadInline() => Interlocked.Increment(ref s_readsInline);

    internal static void Read(long bytes) => Interlocked.Add(ref s_bytesRead, bytes);

    internal static void Wrote(long bytes)
    {
        Interlocked.Increment(ref s_writes);
        Interlocked.Add(ref s_bytesWritten, bytes);
    }

    internal static void Synced() => Interlocked.Increment(ref s_syncs);

    internal static void FellBack(string call, int error) => Fallbacks.Counts.AddOrUpdate((call, error), 1, static (_, count) => count + 1);

    internal static void FlushesCoalesced(long flushes) => Interlocked.Add(ref s_flushesCoalesced, flushes);

    internal static void FlushPaused() => Interlocked.Increment(ref s_flushesPaused);

    internal static void PoolAllocated(int bytes) => Interlocked.Add(ref s_poolAllocated, bytes);

    internal static void PoolReleased(int bytes) => Interlocked.Add(ref s_poolReleased, bytes);

    /// <summary>A call that was queued at that timestamp has ended.</summary>
    internal static void Waited(WaitKind kind, long queuedAt)
    {
        Interlocked.Increment(ref s_waits[(int)kind]);
        Interlocked.Add(ref s_waitTicks[(int)kind], Stopwatch.GetTimestamp() - queuedAt);
    }
}
