using System.Collections.Concurrent;
using System.Diagnostics;
using System.Diagnostics.Metrics;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;
using Pipelines.File.Waiting;

namespace Pipelines.File;

/// <summary>
/// The meter "Pipelines.File". Every method is a field check and no more while nobody listens; where somebody does, it runs the listener's code, so it is
/// called without a lock, and on threads of a caller's or of the application's pool, not on the library's own: what those count waits in
/// <see cref="UnrecordedCounts"/>, or is asked for by the listener.
/// </summary>
internal static class FilePipeMetrics
{
    private static readonly Meter s_meter = new("Pipelines.File");
    private static readonly Counter<long> s_readsInline = s_meter.CreateCounter<long>("pipelines.file.reads.inline", "{read}", "Reads that finished on the caller's thread");
    private static readonly Counter<long> s_readsHandedOver = s_meter.CreateCounter<long>("pipelines.file.reads.handed_over", "{read}", "Reads that were handed to the back end because they had to wait");
    private static readonly Counter<long> s_bytesRead = s_meter.CreateCounter<long>("pipelines.file.bytes_read", "By", "Bytes read from files");
    private static readonly Counter<long> s_fallbacks = s_meter.CreateCounter<long>("pipelines.file.fallbacks", "{call}", "System calls that a file or system does not support, and what they answered");
    private static readonly Counter<long> s_writes = s_meter.CreateCounter<long>("pipelines.file.writes", "{write}", "Write calls");
    private static readonly Counter<long> s_bytesWritten = s_meter.CreateCounter<long>("pipelines.file.bytes_written", "By", "Bytes written to files");
    private static readonly Counter<long> s_flushesCoalesced = s_meter.CreateCounter<long>("pipelines.file.flushes.coalesced", "{flush}", "Flushes whose bytes went out in a write together with another flush's");
    private static readonly Counter<long> s_pauses = s_meter.CreateCounter<long>("pipelines.file.flushes.paused", "{flush}", "Flushes that had to wait because of PauseWriterThreshold");
    private static readonly Counter<long> s_syncs = s_meter.CreateCounter<long>("pipelines.file.syncs", "{sync}", "fdatasync or FlushFileBuffers calls");
    // Interlocked, and observed: the pool may be asked on a thread of the library's own, where no listener's code runs.
    private static long s_poolAllocated;
    private static long s_poolReleased;

    private static readonly Histogram<double> s_waits = s_meter.CreateHistogram<double>(
        "pipelines.file.waiting.time",
        "s",
        "How long a call that waits took on a thread of the library's own, the wait for that thread included",
        tags: null,
        new InstrumentAdvice<double> { HistogramBucketBoundaries = [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10] });

    private static readonly KeyValuePair<string, object?>[] s_kinds =
        [.. Enum.GetValues<WaitKind>().Select(static kind => new KeyValuePair<string, object?>("kind", kind.ToString().ToLowerInvariant()))];

    // Waits that no listener has been told of; a work item that tells them is queued while the flag is 1 (interlocked).
    private static readonly ConcurrentQueue<(WaitKind Kind, double Seconds)> s_unrecordedWaits = new();
    private static int s_isRecordingQueued;

    static FilePipeMetrics()
    {
        s_meter.CreateObservableUpDownCounter("pipelines.file.pool.retained", static () => SegmentPool.Shared.RetainedBytes, "By", "Memory that the pool keeps and nobody uses");
        s_meter.CreateObservableCounter("pipelines.file.pool.allocated", static () => Volatile.Read(ref s_poolAllocated), "By", "Memory that was allocated because the pool had none of its size");
        s_meter.CreateObservableCounter("pipelines.file.pool.released", static () => Volatile.Read(ref s_poolReleased), "By", "Memory that the pool left to the garbage collector: over its limit, idle, or because memory was short");
        s_meter.CreateObservableUpDownCounter("pipelines.file.waiting.threads", static () => (long)WaitingThreads.Shared.ThreadCount, "{thread}", "Threads of the library's own for calls that wait");
        s_meter.CreateObservableUpDownCounter("pipelines.file.waiting.queued", static () => (long)WaitingThreads.Shared.QueuedCount, "{call}", "Calls that wait for one of these threads");
        s_meter.CreateObservableUpDownCounter("pipelines.file.waiting.under_way", static () => (long)WaitingThreads.Shared.UnderWayCount, "{call}", "Calls that one of these threads performs");
    }

    internal static void HandedOver(FileOperationKind kind)
    {
        if (kind == FileOperationKind.Read)
        {
            s_readsHandedOver.Add(1);
        }
    }

    internal static void FellBack(string call, int error)
        => s_fallbacks.Add(1, new KeyValuePair<string, object?>("call", call), new KeyValuePair<string, object?>("error", error));

    internal static void ReadInline() => s_readsInline.Add(1);

    internal static void Read(long bytes)
    {
        if (bytes > 0)
        {
            s_bytesRead.Add(bytes);
        }
    }

    internal static void Wrote(long writes, long bytes)
    {
        if (writes > 0)
        {
            s_writes.Add(writes);
            s_bytesWritten.Add(bytes);
        }
    }

    internal static void FlushesCoalesced(long flushes)
    {
        if (flushes > 0)
        {
            s_flushesCoalesced.Add(flushes);
        }
    }

    internal static void FlushPaused() => s_pauses.Add(1);

    internal static void PoolAllocated(int bytes) => Interlocked.Add(ref s_poolAllocated, bytes);

    internal static void PoolReleased(int bytes) => Interlocked.Add(ref s_poolReleased, bytes);

    internal static void Synced(long syncs)
    {
        if (syncs > 0)
        {
            s_syncs.Add(syncs);
        }
    }

    /// <summary>A call that was queued then has ended. May be called on any thread: the listeners are told by a work item of the application's pool.</summary>
    internal static void Waited(WaitKind kind, long queuedAt)
    {
        if (!s_waits.Enabled)
        {
            return;
        }

        s_unrecordedWaits.Enqueue((kind, Stopwatch.GetElapsedTime(queuedAt).TotalSeconds));
        if (Interlocked.Exchange(ref s_isRecordingQueued, 1) == 0)
        {
            ThreadPool.UnsafeQueueUserWorkItem(
                static _ =>
                {
                    Volatile.Write(ref s_isRecordingQueued, 0);
                    while (s_unrecordedWaits.TryDequeue(out (WaitKind Kind, double Seconds) wait))
                    {
                        s_waits.Record(wait.Seconds, s_kinds[(int)wait.Kind]);
                    }
                },
                0,
                preferLocal: false);
        }
    }
}
