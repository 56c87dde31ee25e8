using System.Collections.Concurrent;
using System.Diagnostics.Metrics;

namespace Pipelines.File.Diagnostics;

// The instruments, through which listeners read the counters.
internal static partial class FilePipeMetrics
{
    /// <summary>Creates the meter on the first call. Returns when it exists.</summary>
    /// <remarks>By itself: compiling it may load an assembly, which its caller survives if it fails.</remarks>
    [MethodImpl(MethodImplOptions.NoInlining)]
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
        internal static readonly Meter Meter = new("Pipelines.File", typeof(FilePipeMetrics).Assembly.GetName().Version!.ToString(3));

        static Instruments()
        {
            Counter("pipelines.file.reads.inline", "{read}", "Reads that finished on the caller's thread", ReadsInline);
            Counter("pipelines.file.reads.handed_over", "{read}", "Reads that were handed to the back end because they had to wait",
                ReadsHandedOver);
            Counter("pipelines.file.bytes_read", "By", "Bytes read from files", BytesRead);
            Counter("pipelines.file.writes", "{write}", "Write calls", Writes);
            Counter("pipelines.file.bytes_written", "By", "Bytes written to files", BytesWritten);
            Counter("pipelines.file.flushes.paused", "{flush}", "Flushes that had to wait because of PauseWriterThreshold", FlushesPaused);
            Counter("pipelines.file.syncs", "{sync}", "fdatasync or FlushFileBuffers calls", Syncs);
            Counter("pipelines.file.pool.allocated", "By", "Memory that was allocated because the pool had none of its size",
                PoolAllocated);
            Counter("pipelines.file.pool.released", "By",
                "Memory that the pool left to the garbage collector: over its limit, idle, or because memory was short", PoolReleased);
            Meter.CreateObservableCounter("pipelines.file.fallbacks", ObserveFallbacks, "{call}",
                "System calls that a file or system does not support, and what they answered");
            Meter.CreateObservableCounter("pipelines.file.waiting.calls", WaitsByKind, "{call}",
                "Calls that a thread of the library's own has performed");
            Level("pipelines.file.pool.retained", "By", "Memory that the pool keeps and nobody uses",
                static () => PoolRetained?.Invoke() ?? 0);
            Level("pipelines.file.waiting.threads", "{thread}", "Threads of the library's own for calls that wait",
                static () => Waiting().Sum(static kind => kind.Threads));
            Level("pipelines.file.waiting.queued", "{call}", "Calls that wait for one of these threads",
                static () => Waiting().Sum(static kind => kind.Queued));
            Level("pipelines.file.waiting.under_way", "{call}", "Calls that one of these threads performs",
                static () => Waiting().Sum(static kind => kind.UnderWay));

            // The last one, because a thread that records a duration waits until this is over.
            s_durations = Meter.CreateHistogram<double>("pipelines.file.waiting.duration", "s",
                "How long these calls took, the wait for the thread included", tags: null,
                new InstrumentAdvice<double> { HistogramBucketBoundaries = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10] });
            Volatile.Write(ref s_hasMeter, true);
        }

        private static void Counter(string name, string unit, string description, Count count)
            => Meter.CreateObservableCounter(name, () => count.Value, unit, description);

        private static void Level(string name, string unit, string description, Func<long> level)
            => Meter.CreateObservableUpDownCounter(name, level, unit, description);

        private static IEnumerable<Measurement<long>> ObserveFallbacks()
            => Fallbacks.Counts.Select(static fallback => new Measurement<long>(
                fallback.Value, new KeyValuePair<string, object?>("call", fallback.Key.Call),
                    new KeyValuePair<string, object?>("error", fallback.Key.Error)));

        private static IEnumerable<Measurement<long>> WaitsByKind()
            => Waiting().Select(static kind => new Measurement<long>(kind.Ended, Tag(kind.Kind)));

        internal static KeyValuePair<string, object?> Tag(string kind) => new("kind", kind);
    }
}
