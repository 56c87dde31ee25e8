using System.Buffers;
using Microsoft.Extensions.Caching.Distributed;

namespace Pipelines.File.AspNetCore;

/// <summary>A distributed cache in files, for the processes of one machine.</summary>
internal sealed class FileDistributedCache(FileCache cache) : IBufferDistributedCache, IFileCache
{
    public Task StopAsync() => Task.Run(cache.Dispose);

    public void Dispose() => cache.Dispose();

    public byte[]? Get(string key)
    {
        ArrayBufferWriter<byte> body = new();
        return TryGet(key, body) ? body.WrittenSpan.ToArray() : null;
    }

    public async Task<byte[]?> GetAsync(string key, CancellationToken token = default)
    {
        ArrayBufferWriter<byte> body = new();
        return await TryGetAsync(key, body, token).ConfigureAwait(false) ? body.WrittenSpan.ToArray() : null;
    }

    public bool TryGet(string key, IBufferWriter<byte> destination)
    {
        ArgumentNullException.ThrowIfNull(key);
        ArgumentNullException.ThrowIfNull(destination);
        return cache.TryGet(key, destination, Write);
    }

    public ValueTask<bool> TryGetAsync(string key, IBufferWriter<byte> destination, CancellationToken token = default)
    {
        ArgumentNullException.ThrowIfNull(key);
        ArgumentNullException.ThrowIfNull(destination);
        return cache.TryGetAsync(key, destination, Write, token);
    }

    // Whoever reads an entry begins its sliding expiration again, so that is all there is to do.
    public void Refresh(string key)
    {
        ArgumentNullException.ThrowIfNull(key);
        _ = cache.TryGet(key, this, static (_, _) => { });
    }

    public async Task RefreshAsync(string key, CancellationToken token = default)
    {
        ArgumentNullException.ThrowIfNull(key);
        _ = await cache.TryGetAsync(key, this, static (_, _) => { }, token).ConfigureAwait(false);
    }

    public void Remove(string key)
    {
        ArgumentNullException.ThrowIfNull(key);
        cache.Remove(key);
    }

    public Task RemoveAsync(string key, CancellationToken token = default)
    {
        token.ThrowIfCancellationRequested();
        Remove(key);
        return Task.CompletedTask;
    }

    public void Set(string key, byte[] value, DistributedCacheEntryOptions options)
    {
        ArgumentNullException.ThrowIfNull(value);
        Set(key, new ReadOnlySequence<byte>(value), options);
    }

    public void Set(string key, ReadOnlySequence<byte> value, DistributedCacheEntryOptions options)
    {
        ArgumentNullException.ThrowIfNull(key);
        ArgumentNullException.ThrowIfNull(options);
        (DateTime expires, TimeSpan sliding) = ExpiryOf(options);
        cache.Set(key, value, expires, sliding);
    }

    public Task SetAsync(string key, byte[] value, DistributedCacheEntryOptions options, CancellationToken token = default)
    {
        ArgumentNullException.ThrowIfNull(value);
        return SetAsync(key, new ReadOnlySequence<byte>(value), options, token).AsTask();
    }

    public ValueTask SetAsync(
        string key, ReadOnlySequence<byte> value, DistributedCacheEntryOptions options, CancellationToken token = default)
    {
        ArgumentNullException.ThrowIfNull(key);
        ArgumentNullException.ThrowIfNull(options);
        (DateTime expires, TimeSpan sliding) = ExpiryOf(options);
        return cache.SetAsync(key, value, ReadOnlyMemory<string>.Empty, expires, sliding, token);
    }

    private (DateTime Expires, TimeSpan Sliding) ExpiryOf(DistributedCacheEntryOptions options)
    {
        DateTimeOffset now = cache.Time.GetUtcNow();
        DateTimeOffset? expires = options.AbsoluteExpirationRelativeToNow is not { } relative ? options.AbsoluteExpiration
            : relative < DateTimeOffset.MaxValue - now ? now + relative : DateTimeOffset.MaxValue;
        return expires <= now
            ? throw new ArgumentOutOfRangeException(nameof(options), expires, "The absolute expiration must be in the future.")
            : ((expires ?? DateTimeOffset.MaxValue).UtcDateTime, options.SlidingExpiration ?? TimeSpan.Zero);
    }

    private static void Write(IBufferWriter<byte> destination, ReadOnlySequence<byte> body)
    {
        foreach (ReadOnlyMemory<byte> segment in body)
        {
            destination.Write(segment.Span);
        }
    }
}
