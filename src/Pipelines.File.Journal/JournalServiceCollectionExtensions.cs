using Microsoft.Extensions.Diagnostics.HealthChecks;
using Microsoft.Extensions.Hosting;
using Pipelines.File;

namespace Microsoft.Extensions.DependencyInjection;

/// <summary>Journals of an application with a host.</summary>
public static class JournalServiceCollectionExtensions
{
    private static readonly string[] s_tags = ["journal"];

    /// <summary>
    /// Adds a journal: a keyed singleton, <c>[FromKeyedServices("orders")] Journal orders</c>. The host opens it before its services start,
    /// or whoever asks for it first does, and closes it after they have stopped. If it cannot be opened, they get the error, and whoever
    /// asks next tries again, until the host has stopped. A health check of that name, with the tag "journal", tries, too: it is unhealthy
    /// when the journal is not open or has failed, and degraded when old segments cannot be removed.
    /// </summary>
    /// <param name="services">The application's services.</param>
    /// <param name="name">The key, and the name in metrics and logs. The folder, too, if no other one is configured.</param>
    /// <param name="configure">Sets options; <see langword="null"/>: none.</param>
    /// <exception cref="ArgumentException">
    /// The name is empty, or a journal was added already with that name, or with one that differs in case alone.
    /// </exception>
    public static IServiceCollection AddJournal(this IServiceCollection services, string name, Action<JournalOptions>? configure = null)
    {
        ArgumentNullException.ThrowIfNull(services);
        ArgumentException.ThrowIfNullOrEmpty(name);

        // Health checks ignore case.
        if (services.Any(service => service.ServiceType == typeof(JournalHost)
            && name.Equals((string?)service.ServiceKey, StringComparison.OrdinalIgnoreCase)))
        {
            throw new ArgumentException($"A journal with the name '{name}' was added already.", nameof(name));
        }

        services.AddKeyedSingleton(name, (provider, _) => new JournalHost(provider, name, configure));
        services.AddKeyedSingleton(name, (provider, _) => provider.GetRequiredKeyedService<JournalHost>(name).Open());
        services.AddHealthChecks().Add(new HealthCheckRegistration(
            name, provider => new JournalHealthCheck(provider.GetRequiredKeyedService<JournalHost>(name)), failureStatus: null, s_tags));
        return services.AddSingleton<IHostedService>(provider => provider.GetRequiredKeyedService<JournalHost>(name));
    }
}
