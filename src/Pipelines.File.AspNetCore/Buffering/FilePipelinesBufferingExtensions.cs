using Microsoft.AspNetCore.Http;
using Pipelines.File;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.Builder;

/// <summary>Buffers the bodies of requests and responses, for an application, a branch or an endpoint.</summary>
public static class FilePipelinesBufferingExtensions
{
    /// <summary>
    /// Buffers the body of every request, as <see cref="FilePipelinesRequestBufferingExtensions.BufferBodyAsync"/> does: later middleware
    /// and endpoints read it more than once, as behind <c>EnableBuffering</c>, and find all of it there.
    /// </summary>
    /// <param name="app">The application, or a branch.</param>
    /// <param name="options">
    /// How to buffer; <see langword="null"/> means the defaults. <see cref="FileBufferingPipeOptions.MaxLength"/> limits the body.
    /// </param>
    /// <returns><paramref name="app"/>.</returns>
    public static IApplicationBuilder UseRequestBuffering(this IApplicationBuilder app, FileBufferingPipeOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(app);
        return app.Use(next => context => BufferRequestAsync(context, next, options));
    }

    /// <summary>Buffers the body of every request to the endpoints, before their parameters are bound.</summary>
    /// <param name="builder">The endpoint or the group: minimal APIs, controllers, pages.</param>
    /// <param name="options">How to buffer; <see langword="null"/> means the defaults.</param>
    /// <typeparam name="TBuilder">The type of the builder.</typeparam>
    /// <returns><paramref name="builder"/>.</returns>
    public static TBuilder WithRequestBuffering<TBuilder>(this TBuilder builder, FileBufferingPipeOptions? options = null)
        where TBuilder : IEndpointConventionBuilder
        => Around(builder, (context, next) => BufferRequestAsync(context, next, options));

    /// <summary>
    /// Buffers the body of every response, and sends it when the endpoint is done: the length is known, headers and status can change until
    /// then, and an endpoint that throws sends nothing of its response.
    /// </summary>
    /// <remarks>
    /// An endpoint that calls <c>DisableBuffering</c> before its first byte, as one of server-sent events does, is not buffered. A response
    /// that is longer than <see cref="FileBufferingPipeOptions.MaxLength"/> fails with <see cref="BufferTooLongException"/>.
    /// </remarks>
    /// <param name="app">The application, or a branch.</param>
    /// <param name="options">How to buffer; <see langword="null"/> means the defaults.</param>
    /// <param name="beforeSendAsync">
    /// Called with the whole response before it is sent, for example to set an entity tag from its hash. With the status 304 or 204 no body
    /// is sent. Its token is that of the request.
    /// </param>
    /// <returns><paramref name="app"/>.</returns>
    public static IApplicationBuilder UseResponseBuffering(this IApplicationBuilder app, FileBufferingPipeOptions? options = null,
        Func<HttpContext, FileBufferingPipe, CancellationToken, ValueTask>? beforeSendAsync = null)
    {
        ArgumentNullException.ThrowIfNull(app);
        return app.Use(next => context => BufferedResponse.InvokeAsync(context, next, options, beforeSendAsync));
    }

    /// <summary>Buffers the body of every response of the endpoints, as <see cref="UseResponseBuffering"/> does.</summary>
    /// <param name="builder">The endpoint or the group: minimal APIs, controllers, pages.</param>
    /// <param name="options">How to buffer; <see langword="null"/> means the defaults.</param>
    /// <param name="beforeSendAsync">Called with the whole response before it is sent.</param>
    /// <typeparam name="TBuilder">The type of the builder.</typeparam>
    /// <returns><paramref name="builder"/>.</returns>
    public static TBuilder WithResponseBuffering<TBuilder>(this TBuilder builder, FileBufferingPipeOptions? options = null,
        Func<HttpContext, FileBufferingPipe, CancellationToken, ValueTask>? beforeSendAsync = null)
        where TBuilder : IEndpointConventionBuilder
        => Around(builder, (context, next) => BufferedResponse.InvokeAsync(context, next, options, beforeSendAsync));

    private static async Task BufferRequestAsync(HttpContext context, RequestDelegate next, FileBufferingPipeOptions? options)
    {
        _ = await context.Request.BufferBodyAsync(options, context.RequestAborted).ConfigureAwait(false);
        await next(context).ConfigureAwait(false);
    }

    private static TBuilder Around<TBuilder>(TBuilder builder, Func<HttpContext, RequestDelegate, Task> invoke)
        where TBuilder : IEndpointConventionBuilder
    {
        ArgumentNullException.ThrowIfNull(builder);
        builder.Add(endpoint =>
        {
            if (endpoint.RequestDelegate is { } next)
            {
                endpoint.RequestDelegate = context => invoke(context, next);
            }
        });
        return builder;
    }
}
