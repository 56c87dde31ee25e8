using System.Diagnostics.Metrics;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;

namespace Pipelines.File;

/// <summary>
/// The meter "Pipelines.File". Every method is a field check and no more while nobody listens; where somebody does, it runs the listener's code, so it is
/// called without a lock.
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
    private static readonly Counter<long> s_poolAllocated = s_meter.CreateCounter<long>("pipelines.file.pool.allocated", "By", "Memory that was allocated because the pool had none of its size");
    private static readonly Counter<long> s_poolReleased = s_meter.CreateCounter<long>("pipelines.file.pool.released", "By", "Memory that the pool left to the garbage collector: over its limit, idle, or because memory was short");

    static FilePipeMetrics()
        => s_meter.CreateObservableUpDownCounter("pipelines.file.pool.retained", static () => SegmentPool.Shared.RetainedBytes, "By", "Memory that the pool keeps and nobody uses");

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

    internal static void Wrote(long bytes)
    {
        if (bytes > 0)
        {
            s_writes.Add(1);
            s_bytesWritten.Add(bytes);
        }
    }

    internal static void FlushesCoalesced(int flushes)
    {
        if (flushes > 0)
        {
            s_flushesCoalesced.Add(flushes);
        }
    }

    internal static void FlushPaused() => s_pauses.Add(1);

    internal static void Synced() => s_syncs.Add(1);

    internal static void PoolAllocated(int bytes) => s_poolAllocated.Add(bytes);

    /// <param name="bytes">How many.</param>
    /// <param name="reason">limit, idle or memory.</param>
    internal static void PoolReleased(int bytes, string reason) => s_poolReleased.Add(bytes, new KeyValuePair<string, object?>("reason", reason));
}
