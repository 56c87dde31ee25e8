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

    internal void Hit() => _hits.Add(1);

    internal void Miss() => _misses.Add(1);

    internal void Evicted() => _evictions.Add(1);

    internal void Damaged() => _damaged.Add(1);

    internal void Bytes(long bytes) => Volatile.Write(ref _bytes, bytes);
}
