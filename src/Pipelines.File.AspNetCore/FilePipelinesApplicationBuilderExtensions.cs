using System.Runtime.CompilerServices;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.Builder;

/// <summary>Adds file pipelines to an application.</summary>
public static class FilePipelinesApplicationBuilderExtensions
{
    /// <summary>
    /// Pumps everything that later middleware and endpoints send by <c>SendFileAsync</c> (static files, <c>Results.File</c>, <c>PhysicalFileResult</c>, …) from the
    /// file straight into the response's own memory. Add it first: before them, and before whatever wraps the response's body (response compression), which then passes on to
    /// it what it does not change itself.
    /// </summary>
    /// <remarks>
    /// <para>Takes over from Kestrel and the test host, which copy through a stream; a server that does better itself (HTTP.sys, IIS), and a body that other middleware has
    /// wrapped by then, keep their own. Status, headers, ranges, caching and the exceptions for a missing file or a bad range are the application's as before.</para>
    /// <para>A file is opened once and sent from there, whatever becomes of its name meanwhile. One that is truncated while it is sent aborts the connection (the
    /// stream, in HTTP/2) and throws <see cref="IOException"/>, which is logged; middleware that changes the bytes, as response compression does, sends files by itself, and has its own rules. A client that
    /// goes away ends the reading at the next flush, and <c>SendFileAsync</c> completes, unless its token is canceled.</para>
    /// <para>On Linux files stay open for the next request (<see cref="FilePipelinesOptions.MaxOpenFiles"/>, <see cref="FilePipelinesOptions.OpenFileIdleTime"/>), which looks first whether the path
    /// means the same file still, unchanged. Somebody who has a file exclusively keeps it from being opened, and so from being served after a change, but not from being sent where it is open. Each call of this
    /// method has files of its own.</para>
    /// </remarks>
    /// <param name="app">The application.</param>
    /// <param name="options">How to send; <see langword="null"/> for the defaults.</param>
    /// <returns><paramref name="app"/>.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="app"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    [OverloadResolutionPriority(1)] // null is no options, and not ambiguous.
    public static IApplicationBuilder UseFilePipelines(this IApplicationBuilder app, FilePipelinesOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(app);
        options ??= new FilePipelinesOptions();
        options.Validate();
        ILoggerFactory loggers = app.ApplicationServices.GetService<ILoggerFactory>() ?? NullLoggerFactory.Instance;
        OpenFiles files = new(options.MaxOpenFiles, options.OpenFileIdleTime);
        app.ApplicationServices.GetService<IHostApplicationLifetime>()?.ApplicationStopping.Register(files.Dispose);
        FileSender sender = new(loggers.CreateLogger("Pipelines.File.AspNetCore"), files, options.SegmentSize, options.MinimumSize);
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
