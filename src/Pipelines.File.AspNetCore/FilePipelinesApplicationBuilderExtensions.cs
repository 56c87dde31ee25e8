using System.Runtime.CompilerServices;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.Builder;

/// <summary>Adds file pipelines to an application.</summary>
public static class FilePipelinesApplicationBuilderExtensions
{
    // Those that no services have. Not in the properties of the application: a branch has its own copy of them.
    private static readonly ConditionalWeakTable<IServiceProvider, FileSender> s_senders = [];

    /// <summary>
    /// Sends files from the file straight into the response's memory, for all later middleware and endpoints that use <c>SendFileAsync</c>:
    /// static files, <c>Results.File</c>, <c>PhysicalFileResult</c>, … Call it first: before the middleware that sends files, and before
    /// middleware that wraps the response's body, such as response compression.
    /// </summary>
    /// <remarks>
    /// <para>It replaces the copy through a stream that Kestrel and the test host make. A server that sends files better itself (HTTP.sys,
    /// IIS) keeps its own way, and so does a body that other middleware has wrapped before. Status, headers, ranges, caching, and the
    /// exceptions for a missing file or a bad range do not change.</para>
    /// <para>A file is opened once and sent from there, even if its name changes meanwhile. If a file is truncated while it is sent, the
    /// connection (in HTTP/2: the stream) is aborted, and an <see cref="IOException"/> is thrown and logged. Middleware that changes the
    /// bytes, such as response compression, sends files by itself and has its own rules. If a client goes away, the reading ends at the
    /// next flush, and <c>SendFileAsync</c> completes, unless its token is canceled.</para>
    /// <para>On Linux, files stay open for the next request (<see cref="FilePipelinesOptions.MaxOpenFiles"/>,
    /// <see cref="FilePipelinesOptions.OpenFileIdleTime"/>). Every request first checks that the path still means the same file, unchanged.
    /// An application keeps one set of files: that of <c>services.AddFilePipelines</c>, or one with the default options. A call with
    /// options keeps files of its own. docs/serving.md says what this means for an administrator.</para>
    /// </remarks>
    /// <param name="app">The application.</param>
    /// <param name="options">
    /// How to send; <see langword="null"/> means the options of <c>services.AddFilePipelines</c>, or else the defaults.
    /// </param>
    /// <returns><paramref name="app"/>.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="app"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    [OverloadResolutionPriority(1)] // A null argument means no options, and is not ambiguous.
    public static IApplicationBuilder UseFilePipelines(this IApplicationBuilder app, FilePipelinesOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(app);
        FileSender sender = options is null ? SenderOf(app) : Make(app, options);
        return app.Use(next => context => sender.InvokeAsync(context, next));
    }

    /// <inheritdoc cref="UseFilePipelines(IApplicationBuilder, FilePipelinesOptions?)"/>
    /// <param name="app">The application.</param>
    /// <param name="configure">Sets the options. It is called once, during this call.</param>
    public static IApplicationBuilder UseFilePipelines(this IApplicationBuilder app, Action<FilePipelinesOptions> configure)
    {
        ArgumentNullException.ThrowIfNull(configure);
        FilePipelinesOptions options = new();
        configure(options);
        return app.UseFilePipelines(options);
    }

    /// <summary>The sender of the application: that of its services, or one that all its branches share.</summary>
    internal static FileSender SenderOf(IApplicationBuilder app)
    {
        if (app.ApplicationServices.GetService<FileSender>() is { } added)
        {
            CloseWhenStopping(app, added);
            return added;
        }

        return s_senders.GetOrAdd(app.ApplicationServices, static (_, app) => Make(app, new FilePipelinesOptions()), app);
    }

    private static FileSender Make(IApplicationBuilder app, FilePipelinesOptions options)
    {
        FileSender sender = FileSender.Of(app.ApplicationServices, options);
        CloseWhenStopping(app, sender);
        return sender;
    }

    private static void CloseWhenStopping(IApplicationBuilder app, FileSender sender)
        => app.ApplicationServices.GetService<IHostApplicationLifetime>()?.ApplicationStopping.Register(sender.Dispose);
}
