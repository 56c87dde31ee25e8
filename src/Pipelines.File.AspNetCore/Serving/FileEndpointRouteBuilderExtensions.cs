using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Routing;
using Microsoft.AspNetCore.Routing.Patterns;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.Builder;

/// <summary>Adds endpoints for files.</summary>
public static class FileEndpointRouteBuilderExtensions
{
    /// <summary>
    /// Serves files as <c>UseStaticFiles</c> does, with the same options and the same responses, but as an endpoint, so that
    /// <c>RequireAuthorization</c>, <c>RequireRateLimiting</c> and other conventions hold for them; and faster.
    /// </summary>
    /// <remarks>
    /// <para>The static files middleware responds. The headers of its response to a GET without conditions and ranges are kept as long
    /// as the file is kept open (<see cref="FilePipelinesOptions.MaxOpenFiles"/>) and every request finds that the path still leads to it,
    /// unchanged. Such a request needs one system call for that question, and does not log what the middleware logs. This holds for a
    /// <see cref="Microsoft.Extensions.FileProviders.PhysicalFileProvider"/>, which the default is where no static web assets are served;
    /// other providers are asked each time.</para>
    /// <para>Everything below the pattern belongs to the endpoint: what is no file gets 404, and a method other than GET and HEAD gets 405.
    /// A path that could be written in a plainer way (an empty segment, a dot; on Windows another name of the same file) gets 404, too: it
    /// would get past an endpoint with a longer pattern. Files are sent as by <c>UseFilePipelines</c>, which may be there as well.</para>
    /// </remarks>
    /// <param name="endpoints">Where the endpoint is added.</param>
    /// <param name="pattern">
    /// The route pattern of the root, such as <c>/files</c>. The rest of the path is that of the file. A pattern with parameters needs the
    /// other overload, because all would be served the same folder; with those of a group the application does not start.
    /// </param>
    /// <param name="options">
    /// What is served, and how; <see langword="null"/> means the defaults: the files of wwwroot. <c>RequestPath</c> must be empty.
    /// <see cref="FileEndpointOptions"/> also serves compressed variants.
    /// </param>
    /// <returns>The endpoint, for conventions.</returns>
    /// <exception cref="ArgumentNullException">An argument is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">
    /// The options have a <c>RequestPath</c>, or <paramref name="pattern"/> has parameters.
    /// </exception>
    public static IEndpointConventionBuilder MapFiles(
        this IEndpointRouteBuilder endpoints, string pattern, StaticFileOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(endpoints);
        ArgumentNullException.ThrowIfNull(pattern);
        options = Checked(options);
        if (RoutePatternFactory.Parse(pattern).Parameters.Count > 0)
        {
            throw new ArgumentException(NoFolder(pattern), nameof(pattern));
        }

        IApplicationBuilder app = endpoints as IApplicationBuilder ?? endpoints.CreateApplicationBuilder();
        RequestDelegate serve = FileEndpoint.Of(app, FilePipelinesApplicationBuilderExtensions.SenderOf(app), options);
        IEndpointConventionBuilder mapped = Map(endpoints, pattern, serve);

        // The pattern of a group is known here only.
        mapped.Finally(static built =>
        {
            if (built is RouteEndpointBuilder { RoutePattern: { Parameters.Count: > 1 } whole })
            {
                throw new InvalidOperationException(NoFolder(whole.RawText));
            }
        });
        return mapped;
    }

    /// <summary>
    /// The same, for a folder that depends on the request, such as that of the user that a pattern like <c>/home/{user}</c> names. Whether
    /// the caller may see that folder is for <c>RequireAuthorization</c>, or for <paramref name="folder"/> itself.
    /// </summary>
    /// <param name="endpoints">Where the endpoint is added.</param>
    /// <param name="pattern">The route pattern of the root, which may have parameters.</param>
    /// <param name="folder">
    /// The folder, absolute, for a request; <see langword="null"/> means 404, as does a folder that does not exist. A route value that
    /// becomes a part of it comes from the client: compare it with what there is, or with the user's own name.
    /// </param>
    /// <param name="options">How to serve. <c>RequestPath</c> and <c>FileProvider</c> must be empty.</param>
    /// <returns>The endpoint, for conventions.</returns>
    /// <exception cref="ArgumentNullException">An argument is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">The options have a <c>RequestPath</c> or a <c>FileProvider</c>.</exception>
    public static IEndpointConventionBuilder MapFiles(
        this IEndpointRouteBuilder endpoints, string pattern, Func<HttpContext, string?> folder, StaticFileOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(endpoints);
        ArgumentNullException.ThrowIfNull(pattern);
        ArgumentNullException.ThrowIfNull(folder);
        options = Checked(options);
        if (options.FileProvider is not null)
        {
            throw new ArgumentException("The folder depends on the request: leave FileProvider empty.", nameof(options));
        }

        IApplicationBuilder app = endpoints as IApplicationBuilder ?? endpoints.CreateApplicationBuilder();
        FolderEndpoints folders = new(app, FilePipelinesApplicationBuilderExtensions.SenderOf(app), options, folder);
        return Map(endpoints, pattern, folders.InvokeAsync);
    }

    private static StaticFileOptions Checked(StaticFileOptions? options)
        => options?.RequestPath.HasValue == true
            ? throw new ArgumentException("The pattern is the path: leave RequestPath empty.", nameof(options))
            : options ?? new StaticFileOptions();

    private static string NoFolder(string? pattern)
        => $"The pattern '{pattern}' has parameters, but the same folder would be served for all their values: "
            + "give MapFiles a function that returns the folder of a request.";

    private static IEndpointConventionBuilder Map(IEndpointRouteBuilder endpoints, string pattern, RequestDelegate serve)
        => endpoints.MapMethods(
            $"{pattern.TrimEnd('/')}/{{**{FileEndpoint.PathParameter}}}", [HttpMethods.Get, HttpMethods.Head], serve);
}
