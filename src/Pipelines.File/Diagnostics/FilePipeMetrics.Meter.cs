using System.Collections.Concurrent;
using System.Diagnostics.Metrics;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Diagnostics;

// The instruments, through which listeners read the counters.
internal static partial class FilePipeMetrics
{
    /// <summary>Creates the meter on the first call. Returns when it exists.</summary>
    internal static void MakeMeter() => _ = Instruments.Meter.Name;

    /// <summary>
    /// The number of fallbacks by call and error. Few entries: the calls that this system or file system does not support.
    /// </summary>
    private static class Fallbacks
    {
        internal static readonly ConcurrentDictionary<(string Call, int Error), long> Counts = new();
    }

    private static class Instruments
    {
        internal static readonly Meter Meter = new("Pipelines.File");

        static Instruments()
        {
            Counter("reads.inline", "{read}", "Reads that finished on the caller's thread", ReadsInline);
            Counter("reads.handed_over", "{read}", "Reads that were handed to the back end because they had to wait", ReadsHandedOver);
            Counter("bytes_read", "By", "Bytes read from files", BytesRead);
            Counter("writes", "{write}", "Write calls", Writes);
            Counter("bytes_written", "By", "Bytes written to files", BytesWritten);
            Counter("flushes.coalesced", "{flush}", "Flushes whose bytes went out in a write together with another flush's",
                FlushesCoalesced);
            Counter("flushes.paused", "{flush}", "Flushes that had to wait because of PauseWriterThreshold", FlushesPaused);
            Counter("syncs", "{sync}", "fdatasync or FlushFileBuffers calls", Syncs);
            Counter("pool.allocated", "By", "Memory that was allocated because the pool had none of its size", PoolAllocated);
            Counter("pool.released", "By",
                "Memory that the pool left to the garbage collector: over its limit, idle, or because memory was short", PoolReleased);
            Meter.CreateObservableCounter("pipelines.file.fallbacks", ObserveFallbacks, "{call}",
                "System calls that a file or system does not support, and what they answered");
            Meter.CreateObservableCounter("pipelines.file.waiting.calls", WaitsByKind, "{call}",
                "Calls that a thread of the library's own has performed");
            Meter.CreateObservableCounter("pipelines.file.waiting.time", WaitTimeByKind, "s",
                "How long these calls took, the wait for the thread included");
            Level("pool.retained", "By", "Memory that the pool keeps and nobody uses", static () => SegmentPool.Shared.RetainedBytes);
            Level("waiting.threads", "{thread}", "Threads of the library's own for calls that wait",
                static () => WaitingThreads.Shared.ThreadCount);
            Level("waiting.queued", "{call}", "Calls that wait for one of these threads", static () => WaitingThreads.Shared.QueuedCount);
            Level("waiting.under_way", "{call}", "Calls that one of these threads performs",
                static () => WaitingThreads.Shared.UnderWayCount);
        }

        private static void Counter(string name, string unit, string description, Count count)
            => Meter.CreateObservableCounter("pipelines.file." + name, () => count.Value, unit, description);

        private static void Level(string name, string unit, string description, Func<long> observe)
            => Meter.CreateObservableUpDownCounter("pipelines.file." + name, observe, unit, description);

        private static IEnumerable<Measurement<long>> ObserveFallbacks()
            => Fallbacks.Counts.Select(static fallback => new Measurement<long>(
                fallback.Value, new KeyValuePair<string, object?>("call", fallback.Key.Call),
                    new KeyValuePair<string, object?>("error", fallback.Key.Error)));

        private static IEnumerable<Measurement<long>> WaitsByKind()
            => Enum.GetValues<WaitKind>().Select(static kind => new Measurement<long>(Volatile.Read(ref s_waits[(int)kind]), Tag(kind)));

        private static IEnumerable<Measurement<double>> WaitTimeByKind()
            => Enum.GetValues<WaitKind>().Select(
                static kind => new Measurement<double>((double)Volatile.Read(ref s_waitTicks[(int)kind]) / Stopwatch.Frequency, Tag(kind)));

        private static KeyValuePair<string, object?> Tag(WaitKind kind) => new("kind", kind.ToString().ToLowerInvariant());
    }
}
