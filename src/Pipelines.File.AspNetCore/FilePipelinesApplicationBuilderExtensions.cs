using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.Builder;

/// <summary>Adds file pipelines to an application.</summary>
public static class FilePipelinesApplicationBuilderExtensions
{
    /// <summary>
    /// Pumps everything that later middleware and endpoints send by <c>SendFileAsync</c> (static files, <c>Results.File</c>, <c>PhysicalFileResult</c>, …) from the
    /// file straight into the response's own memory. Add it before them, and after whatever replaces the response's body, else that goes on sending its own way.
    /// </summary>
    /// <remarks>
    /// Takes over from Kestrel and the test host, which copy through a stream; a server that does better itself (HTTP.sys, IIS), and a body that other middleware has
    /// wrapped by then, keep their own. Status, headers, ranges, caching and the exceptions for a missing file or a bad range are the application's as before.
    /// </remarks>
    /// <param name="app">The application.</param>
    /// <param name="options">How to send; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    public static IApplicationBuilder UseFilePipelines(this IApplicationBuilder app, FilePipelinesOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(app);
        options ??= new FilePipelinesOptions();
        options.Validate();
        FileSender sender = new(options.SegmentSize, options.MinimumSize);
        return app.Use(next => context => sender.InvokeAsync(context, next));
    }

    /// <inheritdoc cref="UseFilePipelines(IApplicationBuilder, FilePipelinesOptions?)"/>
    /// <param name="app">The application.</param>
    /// <param name="configure">Sets the options.</param>
    public static IApplicationBuilder UseFilePipelines(this IApplicationBuilder app, Action<FilePipelinesOptions> configure)
    {
        ArgumentNullException.ThrowIfNull(configure);
        FilePipelinesOptions options = new();
        configure(options);
        return app.UseFilePipelines(options);
    }
}
