using System.Buffers;
using System.IO.Pipelines;
using Microsoft.AspNetCore.OutputCaching;

namespace Pipelines.File.AspNetCore;

/// <summary>ASP.NET Core's output cache, in files.</summary>
internal sealed class FileOutputCacheStore(FileCache cache) : IOutputCacheBufferStore, IFileCache
{
    public Task StopAsync() => Task.Run(cache.Dispose);

    public void Dispose() => cache.Dispose();

    public ValueTask EvictByTagAsync(string tag, CancellationToken cancellationToken)
    {
        ArgumentNullException.ThrowIfNull(tag);
        return cache.EvictByTagAsync(tag, cancellationToken);
    }

    public async ValueTask<byte[]?> GetAsync(string key, CancellationToken cancellationToken)
    {
        ArgumentNullException.ThrowIfNull(key);
        Found found = new();
        _ = await cache.TryGetAsync(key, found, static (found, body) => found.Body = body.ToArray(), cancellationToken)
            .ConfigureAwait(false);
        return found.Body;
    }

    public async ValueTask<bool> TryGetAsync(string key, PipeWriter destination, CancellationToken cancellationToken)
    {
        ArgumentNullException.ThrowIfNull(key);
        ArgumentNullException.ThrowIfNull(destination);
        if (!await cache.TryGetAsync(key, destination, Write, cancellationToken).ConfigureAwait(false))
        {
            return false;
        }

        await destination.FlushAsync(cancellationToken).ConfigureAwait(false);
        return true;
    }

    public ValueTask SetAsync(string key, byte[] value, string[]? tags, TimeSpan validFor, CancellationToken cancellationToken)
    {
        ArgumentNullException.ThrowIfNull(value);
        return SetAsync(key, new ReadOnlySequence<byte>(value), tags, validFor, cancellationToken);
    }

    public ValueTask SetAsync(string key, ReadOnlySequence<byte> value, ReadOnlyMemory<string> tags, TimeSpan validFor,
        CancellationToken cancellationToken)
    {
        ArgumentNullException.ThrowIfNull(key);
        DateTime now = cache.Time.GetUtcNow().UtcDateTime;
        DateTime expires = validFor < DateTime.MaxValue - now ? now + validFor : DateTime.MaxValue;
        return cache.SetAsync(key, value, tags, expires, TimeSpan.Zero, cancellationToken);
    }

    private static void Write(PipeWriter destination, ReadOnlySequence<byte> body)
    {
        foreach (ReadOnlyMemory<byte> segment in body)
        {
            destination.Write(segment.Span);
        }
    }

    private sealed class Found
    {
        internal byte[]? Body { get; set; }
    }
}
