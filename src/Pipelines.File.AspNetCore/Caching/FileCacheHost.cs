using Microsoft.Extensions.Hosting;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// Makes a cache when the application starts, so that a folder that cannot be used is an error then, and ends its looks in order.
/// </summary>
internal sealed class FileCacheHost(Func<object> cacheOf) : IHostedService
{
    private IFileCache? _cache;

    public Task StartAsync(CancellationToken cancellationToken)
    {
        // Another store may have taken its place in the services.
        _cache = cacheOf() as IFileCache;
        return Task.CompletedTask;
    }

    public Task StopAsync(CancellationToken cancellationToken) => _cache?.StopAsync().WaitAsync(cancellationToken) ?? Task.CompletedTask;
}
