using Pipelines.File.Threading;

namespace Pipelines.File.Diagnostics;

/// <summary>
/// The meter "Pipelines.File". Every instrument is observable: a listener asks for what was counted, on a thread of its own. So counting
/// calls nobody, and may happen anywhere, also under a lock and on the library's own threads.
/// </summary>
internal static partial class FilePipeMetrics
{
    // Each by itself: a listener may see a read whose bytes are not counted yet.
    internal static readonly Count ReadsInline = new();
    internal static readonly Count ReadsHandedOver = new();
    internal static readonly Count BytesRead = new();
    internal static readonly Count Writes = new();
    internal static readonly Count BytesWritten = new();
    internal static readonly Count FlushesCoalesced = new();
    internal static readonly Count FlushesPaused = new();
    internal static readonly Count Syncs = new();
    internal static readonly Count PoolAllocated = new();
    internal static readonly Count PoolReleased = new();

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

    internal static void FellBack(string call, int error) => Fallbacks.Counts.AddOrUpdate((call, error), 1, static (_, count) => count + 1);

    /// <summary>A call that was queued at that timestamp has ended.</summary>
    internal static void Waited(WaitKind kind, long queuedAt)
    {
        Interlocked.Increment(ref s_waits[(int)kind]);
        Interlocked.Add(ref s_waitTicks[(int)kind], Stopwatch.GetTimestamp() - queuedAt);
    }

    /// <summary>What was counted since the process began, by any thread.</summary>
    internal sealed class Count
    {
        private long _value;

        internal long Value => Volatile.Read(ref _value);

        internal void Add(long number = 1) => Interlocked.Add(ref _value, number);
    }
}
