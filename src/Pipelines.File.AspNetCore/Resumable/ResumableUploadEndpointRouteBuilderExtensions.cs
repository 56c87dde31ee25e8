using Microsoft.AspNetCore.Routing;
using Microsoft.AspNetCore.Routing.Patterns;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Options;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.Builder;

/// <summary>Adds endpoints for resumable uploads.</summary>
public static class ResumableUploadEndpointRouteBuilderExtensions
{
    /// <summary>
    /// Receives uploads that go on where they broke off, by the tus protocol 1.0.0 (https://tus.io/protocols/resumable-upload), which Uppy,
    /// tus-js-client and others speak. Extensions: creation, creation-with-upload, creation-defer-length, expiration, checksum (sha1 and
    /// sha256, also as a trailer), termination, concatenation.
    /// </summary>
    /// <remarks>
    /// <para>An offset that a client gets is written, or on the device if <see cref="ResumableUploadOptions.Durable"/> is set. Of a
    /// process that is killed, an upload loses what came in the last second, and the client sends that again.</para>
    /// <para>One request at a time changes an upload, also among processes; a second one of this process ends one that waits for bytes, and
    /// takes over, and gets 423 otherwise.</para>
    /// </remarks>
    /// <param name="endpoints">Where the endpoints are added.</param>
    /// <param name="pattern">
    /// The route pattern of the creation, such as <c>/uploads</c>. Uploads are one segment below it. A pattern with parameters needs
    /// <see cref="ResumableUploadOptions.Owner"/> or <see cref="ResumableUploadOptions.FolderOf"/>: otherwise who knows the URL of an
    /// upload could send it below the address of another user.
    /// </param>
    /// <param name="options">How to receive.</param>
    /// <returns>The endpoints, for conventions such as <c>RequireAuthorization</c> and <c>RequireCors</c>.</returns>
    /// <exception cref="ArgumentNullException">An argument is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">
    /// The folder is missing, or the uploads of another pattern are in it; or the pattern has parameters, and the options do not say whose
    /// an upload is.
    /// </exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">
    /// The folder cannot be made or read, or others may write to it (<see cref="ResumableUploadOptions.AllowSharedFolder"/>).
    /// </exception>
    /// <exception cref="IOException">The folder cannot be made or read.</exception>
    public static IEndpointConventionBuilder MapResumableUploads(
        this IEndpointRouteBuilder endpoints, string pattern, ResumableUploadOptions options)
    {
        ArgumentNullException.ThrowIfNull(endpoints);
        ArgumentNullException.ThrowIfNull(pattern);
        ArgumentNullException.ThrowIfNull(options);
        options.Validate();
        bool isBound = options.Owner is not null || options.FolderOf is not null;
        if (!isBound && RoutePatternFactory.Parse(pattern).Parameters.Count > 0)
        {
            throw new ArgumentException(Unbound(pattern), nameof(pattern));
        }

        UploadStores stores = new(options, endpoints.ServiceProvider);
        IHostApplicationLifetime? lifetime = endpoints.ServiceProvider.GetService<IHostApplicationLifetime>();
        ResumableUploadEndpoint endpoint = new(options, stores.Of, stores.Logger, lifetime?.ApplicationStopping ?? CancellationToken.None);
        RouteGroupBuilder group = endpoints.MapGroup(pattern);
        group.Map("", endpoint.InvokeAsync);
        group.Map($"/{{{ResumableUploadEndpoint.IdParameter}}}", endpoint.InvokeAsync);
        if (!isBound)
        {
            // The pattern of a group around this one is known here only.
            ((IEndpointConventionBuilder)group).Finally(static built =>
            {
                if (built is RouteEndpointBuilder { RoutePattern: { } whole }
                    && whole.Parameters.Any(static parameter => parameter.Name != ResumableUploadEndpoint.IdParameter))
                {
                    throw new InvalidOperationException(Unbound(whole.RawText));
                }
            });
        }

        return group;
    }

    /// <summary>The same, with the options of <c>services.AddResumableUploads</c>.</summary>
    /// <param name="endpoints">Where the endpoints are added.</param>
    /// <param name="pattern">The route pattern of the creation.</param>
    /// <param name="name">The name of the options; <see langword="null"/> means those without one.</param>
    /// <returns>The endpoints, for conventions.</returns>
    /// <inheritdoc cref="MapResumableUploads(IEndpointRouteBuilder, string, ResumableUploadOptions)" path="/exception"/>
    /// <exception cref="Microsoft.Extensions.Options.OptionsValidationException">A value of the options is wrong.</exception>
    public static IEndpointConventionBuilder MapResumableUploads(
        this IEndpointRouteBuilder endpoints, string pattern, string? name = null)
    {
        ArgumentNullException.ThrowIfNull(endpoints);
        return endpoints.MapResumableUploads(
            pattern, endpoints.ServiceProvider.GetRequiredService<IOptionsMonitor<ResumableUploadOptions>>().Get(name));
    }

    private static string Unbound(string? pattern)
        => $"The pattern '{pattern}' has parameters, and whoever knows the URL of an upload could send it with other values of them: "
            + "set the option Owner or FolderOf.";
}
