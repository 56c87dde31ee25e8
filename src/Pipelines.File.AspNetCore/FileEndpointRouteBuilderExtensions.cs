using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Routing;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.Builder;

/// <summary>Adds endpoints for files.</summary>
public static class FileEndpointRouteBuilderExtensions
{
    /// <summary>
    /// Serves files as <c>UseStaticFiles</c> does, with the same options and the same answers, but as an endpoint, so that
    /// <c>RequireAuthorization</c>, <c>RequireRateLimiting</c> and other conventions hold for them; and faster.
    /// </summary>
    /// <remarks>
    /// <para>The static files middleware answers. The headers of its answer to a GET without conditions and ranges are remembered as long
    /// as the file is kept open (<see cref="FilePipelinesOptions.MaxOpenFiles"/>) and every request finds that the path still leads to it,
    /// unchanged. Such a request needs one system call for that question, and does not log what the middleware logs. This holds for a
    /// <see cref="Microsoft.Extensions.FileProviders.PhysicalFileProvider"/>, which the default is where no static web assets are served;
    /// other providers are asked each time.</para>
    /// <para>Everything below the pattern belongs to the endpoint: what is no file gets 404, and a method other than GET and HEAD gets 405.
    /// Files are sent as by <c>UseFilePipelines</c>, which may be there as well.</para>
    /// </remarks>
    /// <param name="endpoints">Where the endpoint is added.</param>
    /// <param name="pattern">The route pattern of the root, such as <c>/files</c>. The rest of the path is that of the file.</param>
    /// <param name="options">
    /// What is served, and how; <see langword="null"/> means the defaults: the files of wwwroot. <c>RequestPath</c> must be empty.
    /// </param>
    /// <returns>The endpoint, for conventions.</returns>
    /// <exception cref="ArgumentNullException">An argument is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">The options have a <c>RequestPath</c>.</exception>
    public static IEndpointConventionBuilder MapFiles(
        this IEndpointRouteBuilder endpoints, string pattern, StaticFileOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(endpoints);
        ArgumentNullException.ThrowIfNull(pattern);
        options ??= new StaticFileOptions();
        if (options.RequestPath.HasValue)
        {
            throw new ArgumentException("The pattern is the path: leave RequestPath empty.", nameof(options));
        }

        IApplicationBuilder app = endpoints as IApplicationBuilder ?? endpoints.CreateApplicationBuilder();
        FileEndpoint endpoint = new(app, FilePipelinesApplicationBuilderExtensions.SenderOf(app), options);
        return endpoints.MapMethods($"{pattern.TrimEnd('/')}/{{**{FileEndpoint.PathParameter}}}", [HttpMethods.Get, HttpMethods.Head],
            endpoint.InvokeAsync);
    }
}
