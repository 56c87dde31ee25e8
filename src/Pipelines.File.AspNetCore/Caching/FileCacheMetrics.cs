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
        Meter meter = factory?.Create("Pipelines.File.Caching") ?? new Meter("Pipelines.File.Caching");
        _hits = meter.CreateCounter<long>("pipelines.file.cache.hits", "{entry}", "Entries that were found and given out");
        _misses = meter.CreateCounter<long>("pipelines.file.cache.misses", "{entry}", "Entries that were asked for and not there");
        _evictions = meter.CreateCounter<long>(
            "pipelines.file.cache.evictions", "{entry}", "Entries that were removed because they had expired or there were too many bytes");
        _damaged = meter.CreateCounter<long>(
            "pipelines.file.cache.damaged", "{entry}", "Files that were no whole entry and were removed; each is a miss, too");
        meter.CreateObservableUpDownCounter(
            "pipelines.file.cache.bytes", () => Volatile.Read(ref _bytes), "By", "Bytes on disk when the folder was last looked through");
    }

    internal void Hit() => _hits.Add(1);

    internal void Miss() => _misses.Add(1);

    internal void Evicted() => _evictions.Add(1);

    internal void Damaged() => _damaged.Add(1);

    internal void Bytes(long bytes) => Volatile.Write(ref _bytes, bytes);
}
