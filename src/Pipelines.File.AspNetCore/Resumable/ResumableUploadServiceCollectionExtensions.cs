using Microsoft.Extensions.Options;
using Pipelines.File.AspNetCore;

namespace Microsoft.Extensions.DependencyInjection;

/// <summary>Configures resumable uploads.</summary>
public static class ResumableUploadServiceCollectionExtensions
{
    /// <summary>
    /// Configures the options of <c>MapResumableUploads(pattern, name)</c>, which may be bound to configuration like any others. They are
    /// checked when the application starts.
    /// </summary>
    /// <param name="services">The services of the application.</param>
    /// <param name="configure">Sets the options; <see cref="ResumableUploadOptions.Folder"/> is required.</param>
    /// <param name="name">Their name, if there are several; <see langword="null"/>, the default: none.</param>
    /// <returns>The builder of the options, for <c>BindConfiguration</c> and others.</returns>
    /// <exception cref="ArgumentNullException">
    /// <paramref name="services"/> or <paramref name="configure"/> is <see langword="null"/>.
    /// </exception>
    public static OptionsBuilder<ResumableUploadOptions> AddResumableUploads(
        this IServiceCollection services, Action<ResumableUploadOptions> configure, string? name = null)
    {
        ArgumentNullException.ThrowIfNull(services);
        ArgumentNullException.ThrowIfNull(configure);
        OptionsBuilder<ResumableUploadOptions> options = services.AddOptions<ResumableUploadOptions>(name);
        options.Services.AddSingleton<IValidateOptions<ResumableUploadOptions>>(
            new OptionsCheck<ResumableUploadOptions>(options.Name, static options => options.Validate()));
        return options.Configure(configure).ValidateOnStart();
    }
}
