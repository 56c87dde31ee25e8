using System.Collections.Concurrent;
using System.Diagnostics.Metrics;
using Pipelines.File.Threading;

namespace Pipelines.File.Diagnostics;

/// <summary>
/// The counters of the meter "Pipelines.File". Every instrument but the histogram is observable: a listener reads the counters on its own
/// thread. So counting calls no listener, and is allowed on any thread and under any lock.
/// </summary>
internal static partial class FilePipeMetrics
{
    // Each counter is updated by itself: a listener may see a read whose bytes are not counted yet.
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

    /// <summary>So many durations wait to be recorded; if the application's pool does not get to it, the others are lost.</summary>
    private const int MaxUnrecorded = 65_536;

    // Indexed by WaitKind, interlocked: the calls that have ended.
    private static readonly long[] s_waits = new long[(int)WaitKind.Look + 1];

    // Recording a duration runs the code of listeners, which a work item of the application's pool does. Interlocked: their number.
    private static readonly ConcurrentQueue<(WaitKind Kind, TimeSpan Duration)> s_unrecorded = new();
    private static int s_unrecordedCount;

    // Volatile: set when the meter exists.
    private static Histogram<double>? s_durations;

    /// <summary>
    /// The first count creates the meter on a thread of the pool, because that takes as long as everything else that the first file of a
    /// process needs. Listeners also get what was counted before the meter existed.
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
                // A listener, which is called when an instrument is created, has thrown. Files are read and written without the meter.
            }
        },
        null);

    internal static void FellBack(string call, int error) => Fallbacks.Counts.AddOrUpdate((call, error), 1, static (_, count) => count + 1);

    /// <summary>Counts a call that was queued at this <see cref="Stopwatch"/> timestamp and has ended now.</summary>
    internal static void Waited(WaitKind kind, long queuedAt)
    {
        Interlocked.Increment(ref s_waits[(int)kind]);
        if (Volatile.Read(ref s_durations) is { Enabled: true } && Volatile.Read(ref s_unrecordedCount) < MaxUnrecorded)
        {
            s_unrecorded.Enqueue((kind, Stopwatch.GetElapsedTime(queuedAt)));
            if (Interlocked.Increment(ref s_unrecordedCount) == 1)
            {
                ThreadPool.UnsafeQueueUserWorkItem(static _ => RecordDurations(), null);
            }
        }
    }

    /// <summary>Records until nothing is left. Whoever adds the first one queues it, so it runs once at a time.</summary>
    private static void RecordDurations()
    {
        do
        {
            _ = s_unrecorded.TryDequeue(out (WaitKind Kind, TimeSpan Duration) wait);
            try
            {
                s_durations!.Record(wait.Duration.TotalSeconds, Instruments.Tag(wait.Kind));
            }
            catch (Exception)
            {
                // A listener has thrown. Here nobody has called it, so it would end the process.
            }
        }
        while (Interlocked.Decrement(ref s_unrecordedCount) > 0);
    }

    /// <summary>A count since the process began. Any thread may add to it and read it.</summary>
    internal sealed class Count
    {
        private long _value;

        internal long Value => Volatile.Read(ref _value);

        internal void Add(long number = 1) => Interlocked.Add(ref _value, number);
    }
}
