using Microsoft.AspNetCore.OutputCaching;
using Microsoft.Extensions.Caching.Distributed;
using Microsoft.Extensions.DependencyInjection.Extensions;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;
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
    /// <exception cref="Microsoft.Extensions.Options.OptionsValidationException">
    /// A value is wrong, such as a missing folder (thrown when the application starts, or when the cache is first used).
    /// </exception>
    public static IServiceCollection AddFileOutputCache(this IServiceCollection services, Action<FileCacheOptions> configure)
    {
        AddOptions(services, configure, FileCacheOptions.OutputCache);
        services.RemoveAll<IOutputCacheStore>();
        services.AddSingleton<IOutputCacheStore>(
            static provider => new FileOutputCacheStore(Make(provider, FileCacheOptions.OutputCache)));
        services.AddSingleton<IHostedService>(
            static provider => new FileCacheHost(() => provider.GetRequiredService<IOutputCacheStore>()));
        return services;
    }

    /// <summary>
    /// Keeps the entries of <see cref="IDistributedCache"/> in files, for <c>HybridCache</c> and others: it is an
    /// <see cref="IBufferDistributedCache"/>. Use another folder than that of the output cache.
    /// </summary>
    /// <inheritdoc cref="AddFileOutputCache"/>
    public static IServiceCollection AddFileDistributedCache(this IServiceCollection services, Action<FileCacheOptions> configure)
    {
        AddOptions(services, configure, FileCacheOptions.DistributedCache);
        services.RemoveAll<IDistributedCache>();
        services.AddSingleton<IDistributedCache>(
            static provider => new FileDistributedCache(Make(provider, FileCacheOptions.DistributedCache)));
        services.AddSingleton<IHostedService>(
            static provider => new FileCacheHost(() => provider.GetRequiredService<IDistributedCache>()));
        return services;
    }

    /// <summary>The same as <see cref="AddFileDistributedCache"/>, for one of several caches: a keyed service.</summary>
    /// <param name="services">The services of the application.</param>
    /// <param name="key">The key of the service, and the name of its options.</param>
    /// <param name="configure">Sets the options; <see cref="FileCacheOptions.Folder"/> is required.</param>
    /// <inheritdoc cref="AddFileOutputCache" path="/returns"/>
    /// <inheritdoc cref="AddFileOutputCache" path="/exception"/>
    public static IServiceCollection AddKeyedFileDistributedCache(
        this IServiceCollection services, string key, Action<FileCacheOptions> configure)
    {
        ArgumentException.ThrowIfNullOrEmpty(key);
        AddOptions(services, configure, key);
        services.AddKeyedSingleton<IDistributedCache>(
            key, static (provider, key) => new FileDistributedCache(Make(provider, (string)key!)));
        services.AddSingleton<IHostedService>(
            provider => new FileCacheHost(() => provider.GetRequiredKeyedService<IDistributedCache>(key)));
        return services;
    }

    private static void AddOptions(IServiceCollection services, Action<FileCacheOptions> configure, string name)
    {
        ArgumentNullException.ThrowIfNull(services);
        ArgumentNullException.ThrowIfNull(configure);
        services.AddSingleton<IValidateOptions<FileCacheOptions>>(
            new OptionsCheck<FileCacheOptions>(name, static options => options.Validate()));
        services.AddOptions<FileCacheOptions>(name).Configure(configure).ValidateOnStart();
    }

    private static FileCache Make(IServiceProvider provider, string name) => new(
        provider.GetRequiredService<IOptionsMonitor<FileCacheOptions>>().Get(name),
        provider.GetService<TimeProvider>() ?? TimeProvider.System,
        new FileCacheMetrics(provider.GetService<System.Diagnostics.Metrics.IMeterFactory>()),
        provider.GetService<ILoggerFactory>()?.CreateLogger("Pipelines.File.AspNetCore.Caching"));
}
