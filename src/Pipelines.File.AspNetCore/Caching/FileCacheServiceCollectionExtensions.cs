using Microsoft.AspNetCore.OutputCaching;
using Microsoft.Extensions.Caching.Distributed;
using Microsoft.Extensions.DependencyInjection.Extensions;
using Pipelines.File.AspNetCore;

namespace Microsoft.Extensions.DependencyInjection;

/// <summary>Adds caches that keep their entries in files.</summary>
public static class FileCacheServiceCollectionExtensions
{
    /// <summary>
    /// Keeps the entries of ASP.NET Core's output cache in files: they survive a restart, and several processes may share them. Call it
    /// beside <c>AddOutputCache</c>, before or after it.
    /// </summary>
    /// <remarks>
    /// An entry appears whole or not at all and carries a checksum, so a process that is killed, and a damaged file, cost a miss and never
    /// a wrong response. Nothing is kept in memory but what is being read or written.
    /// </remarks>
    /// <param name="services">The services of the application.</param>
    /// <param name="configure">Sets the options; <see cref="FileCacheOptions.Folder"/> is required.</param>
    /// <returns><paramref name="services"/>.</returns>
    /// <exception cref="ArgumentNullException">An argument is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">The folder is missing (thrown when the cache is first used).</exception>
    public static IServiceCollection AddFileOutputCache(this IServiceCollection services, Action<FileCacheOptions> configure)
    {
        ArgumentNullException.ThrowIfNull(services);
        ArgumentNullException.ThrowIfNull(configure);
        services.RemoveAll<IOutputCacheStore>();
        services.AddSingleton<IOutputCacheStore>(provider => new FileOutputCacheStore(Make(provider, configure)));
        return services;
    }

    /// <summary>
    /// Keeps the entries of <see cref="IDistributedCache"/> in files, for <c>HybridCache</c> and others: it is an
    /// <see cref="IBufferDistributedCache"/>. Use another folder than that of the output cache.
    /// </summary>
    /// <inheritdoc cref="AddFileOutputCache"/>
    public static IServiceCollection AddFileDistributedCache(this IServiceCollection services, Action<FileCacheOptions> configure)
    {
        ArgumentNullException.ThrowIfNull(services);
        ArgumentNullException.ThrowIfNull(configure);
        services.RemoveAll<IDistributedCache>();
        services.AddSingleton<IDistributedCache>(provider => new FileDistributedCache(Make(provider, configure)));
        return services;
    }

    private static FileCache Make(IServiceProvider provider, Action<FileCacheOptions> configure)
    {
        FileCacheOptions options = new();
        configure(options);
        options.Validate();
        return new FileCache(
            options,
            provider.GetService<TimeProvider>() ?? TimeProvider.System,
            new FileCacheMetrics(provider.GetService<System.Diagnostics.Metrics.IMeterFactory>()));
    }
}
