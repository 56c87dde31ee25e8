using System.Diagnostics;
using System.Diagnostics.Metrics;

namespace Pipelines.File.AspNetCore;

/// <summary>The counters of one cache.</summary>
internal sealed class FileCacheMetrics
{
    private readonly Counter<long> _hits;
    private readonly Counter<long> _misses;
    private readonly Counter<long> _evictions;
    private readonly Counter<long> _damaged;
    private long _bytes;

    internal FileCacheMetrics(IMeterFactory? factory)
    {
        Meter meter = factory?.Create(FilePipelinesMeter.CachingName) ?? new Meter(FilePipelinesMeter.CachingName);
        _hits = meter.CreateCounter<long>(FilePipelinesMeter.CacheHits, "{entry}", "Entries that were found and given out");
        _misses = meter.CreateCounter<long>(FilePipelinesMeter.CacheMisses, "{entry}", "Entries that were asked for and not there");
        _evictions = meter.CreateCounter<long>(
            FilePipelinesMeter.CacheEvictions, "{entry}",
            "Entries that were removed because they had expired or there were too many bytes");
        _damaged = meter.CreateCounter<long>(
            FilePipelinesMeter.CacheDamaged, "{entry}", "Files that were no whole entry and were removed; each is a miss, too");
        meter.CreateObservableUpDownCounter(
            FilePipelinesMeter.CacheBytes, () => Volatile.Read(ref _bytes), "By", "Bytes on disk when the folder was last looked through");
    }

    internal void Hit() => Count(_hits);

    internal void Miss() => Count(_misses);

    internal void Evicted() => Count(_evictions);

    internal void Damaged() => Count(_damaged);

    internal void Bytes(long bytes) => Volatile.Write(ref _bytes, bytes);

    // A listener is called on this thread. What it throws is not that of who asks for an entry, and ends no look.
    private static void Count(Counter<long> counter)
    {
        try
        {
            counter.Add(1);
        }
        catch (Exception e)
        {
            Debug.WriteLine(e);
        }
    }
}
