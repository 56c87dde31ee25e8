using Microsoft.AspNetCore.Routing;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
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
    /// <para>An offset that a client is told is written, or on the device if <see cref="ResumableUploadOptions.Durable"/> is set. Of a
    /// process that is killed, an upload loses what came in the last second, and the client sends that again.</para>
    /// <para>One request at a time changes an upload, also among processes; a second one gets 423. A connection that is dead without the
    /// server's knowledge holds its upload until the server's minimum data rate ends it.</para>
    /// </remarks>
    /// <param name="endpoints">Where the endpoints are added.</param>
    /// <param name="pattern">The route pattern of the creation, such as <c>/uploads</c>. Uploads are one segment below it.</param>
    /// <param name="options">How to receive.</param>
    /// <returns>The endpoints, for conventions such as <c>RequireAuthorization</c> and <c>RequireCors</c>.</returns>
    /// <exception cref="ArgumentNullException">An argument is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">The folder is missing.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">The folder cannot be made or read.</exception>
    /// <exception cref="IOException">The folder cannot be made or read.</exception>
    public static IEndpointConventionBuilder MapResumableUploads(
        this IEndpointRouteBuilder endpoints, string pattern, ResumableUploadOptions options)
    {
        ArgumentNullException.ThrowIfNull(endpoints);
        ArgumentNullException.ThrowIfNull(pattern);
        ArgumentNullException.ThrowIfNull(options);
        options.Validate();
        IHostApplicationLifetime? lifetime = endpoints.ServiceProvider.GetService<IHostApplicationLifetime>();
        UploadStore store = new(options, endpoints.ServiceProvider.GetService<TimeProvider>() ?? TimeProvider.System);
        lifetime?.ApplicationStopping.Register(store.Dispose);
        ResumableUploadEndpoint endpoint = new(store, lifetime?.ApplicationStopping ?? CancellationToken.None);
        RouteGroupBuilder group = endpoints.MapGroup(pattern);
        group.Map("", endpoint.InvokeAsync);
        group.Map($"/{{{ResumableUploadEndpoint.IdParameter}}}", endpoint.InvokeAsync);
        return group;
    }
}
