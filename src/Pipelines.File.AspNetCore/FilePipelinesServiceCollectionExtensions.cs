using Microsoft.Extensions.DependencyInjection.Extensions;
using Microsoft.Extensions.Options;
using Pipelines.File.AspNetCore;

namespace Microsoft.Extensions.DependencyInjection;

/// <summary>Adds file pipelines to the services of an application.</summary>
public static class FilePipelinesServiceCollectionExtensions
{
    /// <summary>
    /// Configures <c>UseFilePipelines()</c>, and adds the one set of open files that the application keeps. It may be called several times,
    /// and <see cref="FilePipelinesOptions"/> may be configured like any other options (<c>services.Configure</c>).
    /// </summary>
    /// <param name="services">The services.</param>
    /// <param name="configure">Sets the options, or <see langword="null"/>.</param>
    /// <returns><paramref name="services"/>.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="services"/> is <see langword="null"/>.</exception>
    public static IServiceCollection AddFilePipelines(this IServiceCollection services, Action<FilePipelinesOptions>? configure = null)
    {
        ArgumentNullException.ThrowIfNull(services);
        services.AddOptions<FilePipelinesOptions>().Configure(configure ?? (static _ => { }));
        services.TryAddSingleton(static services
            => FileSender.Of(services, services.GetRequiredService<IOptions<FilePipelinesOptions>>().Value));
        return services;
    }
}
