using System.Collections.Concurrent;
using System.Diagnostics.Metrics;

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
        internal static readonly Meter Meter = new(FilePipeMeter.Name, FilePipeMeter.Version);

        static Instruments()
        {
            Counter(FilePipeMeter.ReadsInline, "{read}", "Reads that finished on the caller's thread", ReadsInline);
            Counter(FilePipeMeter.ReadsHandedOver, "{read}", "Reads that were handed to the back end because they had to wait",
                ReadsHandedOver);
            Counter(FilePipeMeter.BytesRead, "By", "Bytes read from files", BytesRead);
            Counter(FilePipeMeter.Writes, "{write}", "Write calls", Writes);
            Counter(FilePipeMeter.BytesWritten, "By", "Bytes written to files", BytesWritten);
            Counter(FilePipeMeter.FlushesCoalesced, "{flush}", "Flushes whose bytes went out in a write together with another flush's",
                FlushesCoalesced);
            Counter(FilePipeMeter.FlushesPaused, "{flush}", "Flushes that had to wait because of PauseWriterThreshold", FlushesPaused);
            Counter(FilePipeMeter.Syncs, "{sync}", "fdatasync or FlushFileBuffers calls", Syncs);
            Counter(FilePipeMeter.PoolAllocated, "By", "Memory that was allocated because the pool had none of its size", PoolAllocated);
            Counter(FilePipeMeter.PoolReleased, "By",
                "Memory that the pool left to the garbage collector: over its limit, idle, or because memory was short", PoolReleased);
            Counter(FilePipeMeter.FollowedLines, "{line}", "Lines that followers have returned", FollowedLines);
            Counter(FilePipeMeter.FollowedRotations, "{file}", "Files that followers have left for the next one", FollowedRotations);
            Counter(FilePipeMeter.FollowedGaps, "{gap}", "How often lines may have been missed", FollowedGaps);
            Level(FilePipeMeter.FollowedFiles, "{file}", "Files that followers have open");
            Level(FilePipeMeter.FollowedBytesBehind, "By", "Bytes of logs that were written and not returned yet");
            Meter.CreateObservableCounter(FilePipeMeter.Fallbacks, ObserveFallbacks, "{call}",
                "System calls that a file or system does not support, and what they answered");
            Meter.CreateObservableCounter(FilePipeMeter.WaitingCalls, WaitsByKind, "{call}",
                "Calls that a thread of the library's own has performed");
            Level(FilePipeMeter.PoolRetained, "By", "Memory that the pool keeps and nobody uses");
            Level(FilePipeMeter.WaitingThreads, "{thread}", "Threads of the library's own for calls that wait");
            Level(FilePipeMeter.WaitingQueued, "{call}", "Calls that wait for one of these threads");
            Level(FilePipeMeter.WaitingUnderWay, "{call}", "Calls that one of these threads performs");

            // The last one, because a thread that records a duration waits until this is over.
            Volatile.Write(ref s_durations, Meter.CreateHistogram<double>(FilePipeMeter.WaitingDuration, "s",
                "How long these calls took, the wait for the thread included", tags: null,
                new InstrumentAdvice<double> { HistogramBucketBoundaries = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10] }));
        }

        private static void Counter(string name, string unit, string description, Count count)
            => Meter.CreateObservableCounter(name, () => count.Value, unit, description);

        private static void Level(string name, string unit, string description)
            => Meter.CreateObservableUpDownCounter(
                name, () => s_levels.TryGetValue(name, out Func<long>? level) ? level() : 0, unit, description);

        private static IEnumerable<Measurement<long>> ObserveFallbacks()
            => Fallbacks.Counts.Select(static fallback => new Measurement<long>(
                fallback.Value, new KeyValuePair<string, object?>("call", fallback.Key.Call),
                    new KeyValuePair<string, object?>("error", fallback.Key.Error)));

        private static IEnumerable<Measurement<long>> WaitsByKind()
            => s_waits.Select(static wait => new Measurement<long>(wait.Value.Value, Tag(wait.Key)));

        internal static KeyValuePair<string, object?> Tag(string kind) => new("kind", kind);
    }
}
