using System.Collections.Concurrent;
using System.Diagnostics;
using System.Diagnostics.Metrics;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Diagnostics;

/// <summary>
/// The meter "Pipelines.File". Every instrument is observable: a listener asks for what was counted, on a thread of its own. So counting calls nobody, and may happen anywhere, also
/// under a lock and on the library's own threads.
/// </summary>
internal static class FilePipeMetrics
{
    private static readonly Meter s_meter = new("Pipelines.File");

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
    private static readonly long[] s_waits = new long[Enum.GetValues<WaitKind>().Length];
    private static readonly long[] s_waitTicks = new long[Enum.GetValues<WaitKind>().Length];

    // Few: what one system does not support.
    private static readonly ConcurrentDictionary<(string Call, int Error), long> s_fallbacks = new();

    static FilePipeMetrics()
    {
        Counter("reads.inline", "{read}", "Reads that finished on the caller's thread", static () => Volatile.Read(ref s_readsInline));
        Counter("reads.handed_over", "{read}", "Reads that were handed to the back end because they had to wait", static () => Volatile.Read(ref s_readsHandedOver));
        Counter("bytes_read", "By", "Bytes read from files", static () => Volatile.Read(ref s_bytesRead));
        Counter("writes", "{write}", "Write calls", static () => Volatile.Read(ref s_writes));
        Counter("bytes_written", "By", "Bytes written to files", static () => Volatile.Read(ref s_bytesWritten));
        Counter("flushes.coalesced", "{flush}", "Flushes whose bytes went out in a write together with another flush's", static () => Volatile.Read(ref s_flushesCoalesced));
        Counter("flushes.paused", "{flush}", "Flushes that had to wait because of PauseWriterThreshold", static () => Volatile.Read(ref s_flushesPaused));
        Counter("syncs", "{sync}", "fdatasync or FlushFileBuffers calls", static () => Volatile.Read(ref s_syncs));
        Counter("pool.allocated", "By", "Memory that was allocated because the pool had none of its size", static () => Volatile.Read(ref s_poolAllocated));
        Counter("pool.released", "By", "Memory that the pool left to the garbage collector: over its limit, idle, or because memory was short", static () => Volatile.Read(ref s_poolReleased));
        s_meter.CreateObservableCounter("pipelines.file.fallbacks", Fallbacks, "{call}", "System calls that a file or system does not support, and what they answered");
        s_meter.CreateObservableCounter("pipelines.file.waiting.calls", WaitsByKind, "{call}", "Calls that a thread of the library's own has performed");
        s_meter.CreateObservableCounter("pipelines.file.waiting.time", WaitTimeByKind, "s", "How long these calls took, the wait for the thread included");
        Level("pool.retained", "By", "Memory that the pool keeps and nobody uses", static () => SegmentPool.Shared.RetainedBytes);
        Level("waiting.threads", "{thread}", "Threads of the library's own for calls that wait", static () => WaitingThreads.Shared.ThreadCount);
        Level("waiting.queued", "{call}", "Calls that wait for one of these threads", static () => WaitingThreads.Shared.QueuedCount);
        Level("waiting.under_way", "{call}", "Calls that one of these threads performs", static () => WaitingThreads.Shared.UnderWayCount);
    }

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

    internal static void FellBack(string call, int error) => s_fallbacks.AddOrUpdate((call, error), 1, static (_, count) => count + 1);

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

    private static void Counter(string name, string unit, string description, Func<long> observe)
        => s_meter.CreateObservableCounter("pipelines.file." + name, observe, unit, description);

    private static void Level(string name, string unit, string description, Func<long> observe)
        => s_meter.CreateObservableUpDownCounter("pipelines.file." + name, observe, unit, description);

    private static IEnumerable<Measurement<long>> Fallbacks()
        => s_fallbacks.Select(static fallback => new Measurement<long>(
            fallback.Value, new KeyValuePair<string, object?>("call", fallback.Key.Call), new KeyValuePair<string, object?>("error", fallback.Key.Error)));

    private static IEnumerable<Measurement<long>> WaitsByKind()
        => Enum.GetValues<WaitKind>().Select(static kind => new Measurement<long>(Volatile.Read(ref s_waits[(int)kind]), Tag(kind)));

    private static IEnumerable<Measurement<double>> WaitTimeByKind()
        => Enum.GetValues<WaitKind>().Select(static kind => new Measurement<double>((double)Volatile.Read(ref s_waitTicks[(int)kind]) / Stopwatch.Frequency, Tag(kind)));

    private static KeyValuePair<string, object?> Tag(WaitKind kind) => new("kind", kind.ToString().ToLowerInvariant());
}
