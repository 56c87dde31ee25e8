using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Pipelines.File.AspNetCore;

/// <summary>The middleware: holds what all requests of one application share, and decides which body features it replaces.</summary>
internal sealed class FileSender : IDisposable
{
    private readonly ILogger _logger;
    private readonly long _minimumSize;

    // Kestrel has one body feature for all requests of a connection (or of an HTTP/2 stream, which it reuses). Each gets one feature of
    // ours, so a request allocates none.
    private readonly ConditionalWeakTable<IHttpResponseBodyFeature, FileSendingFeature> _features = [];

    // The data rate that the server demands, and the reduced one during a send. Immutable, so any thread may replace it.
    private ReducedRate? _reducedRate;

    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    internal FileSender(FilePipelinesOptions options, ILogger logger, FilePipelinesMetrics metrics)
    {
        options.Validate();
        _logger = logger;
        _minimumSize = options.MinimumSize;
        BufferSize = options.BufferSize;
        Metrics = metrics;
        Files = new OpenFiles(options.MaxOpenFiles, options.OpenFileIdleTime, metrics);
    }

    /// <summary>The files that stay open for the next request.</summary>
    internal OpenFiles Files { get; }

    internal FilePipelinesMetrics Metrics { get; }

    internal int BufferSize { get; }

    /// <summary>Makes the sender of an application.</summary>
    internal static FileSender Of(IServiceProvider services, FilePipelinesOptions options)
        => new(options, (services.GetService<ILoggerFactory>() ?? NullLoggerFactory.Instance).CreateLogger("Pipelines.File.AspNetCore"),
            FilePipelinesMetrics.Of(services));

    /// <summary>Closes all kept files, and keeps none from now on.</summary>
    public void Dispose() => Files.Dispose();

    internal async Task InvokeAsync(HttpContext context, RequestDelegate next)
    {
        IFeatureCollection features = context.Features;
        IHttpResponseBodyFeature? inner = features.Get<IHttpResponseBodyFeature>();
        FileSendingFeature? sending = inner is FileSendingFeature ? null : Begin(context, inner);
        if (sending is not null)
        {
            features.Set<IHttpResponseBodyFeature>(sending);
        }

        try
        {
            await next(context).ConfigureAwait(false);
        }
        catch (Exception e) when (UploadRefusal.Of(context, e) is { } refusal)
        {
            _logger.LogUploadRefused(refusal.Status, refusal.Kind);
            await refusal.AnswerAsync(context).ConfigureAwait(false);
        }
        finally
        {
            // Middleware that has wrapped the body after this one puts back what it found. If it does not, its feature stays, as it would
            // without this middleware.
            if (sending is not null && features.Get<IHttpResponseBodyFeature>() == sending)
            {
                features.Set(inner);
            }
        }
    }

    /// <summary>
    /// Begins to send the files of a request: with what does it already, or with a feature around the server's own.
    /// <see langword="null"/> if the server keeps its own way, or if middleware has wrapped its body.
    /// </summary>
    internal FileSendingFeature? Begin(HttpContext context, IHttpResponseBodyFeature? body)
    {
        bool isKestrel = body?.GetType().Assembly == typeof(KestrelServer).Assembly;
        if (body is null or FileSendingFeature || !(isKestrel || IsTestHost(body)))
        {
            return body as FileSendingFeature;
        }

        FileSendingFeature sending = isKestrel
            ? _features.GetOrAdd(body, static (body, sender) => new FileSendingFeature(sender, body), this)
            : new FileSendingFeature(this, body);
        sending.Begin(context, isKestrel);
        return sending;
    }

    /// <summary>
    /// Whether the server would only copy these bytes of the file into the body, as far as is known before the file is open.
    /// </summary>
    internal bool CanSend(HttpContext context, long offset, long? count)
    {
        if (offset < 0 || count <= 0 || count < _minimumSize)
        {
            return false;
        }

        // Left to the server: a response without a body, where it drops the bytes, or throws before the response has started; and more
        // bytes than were announced, for which it throws.
        HttpResponse response = context.Response;
        return !HttpMethods.IsHead(context.Request.Method)
            && response.StatusCode
                is not (StatusCodes.Status204NoContent or StatusCodes.Status205ResetContent or StatusCodes.Status304NotModified)
            && !(response.ContentLength < count);
    }

    /// <summary>As <see cref="CanSend"/>, after the file was opened and its length is known.</summary>
    internal bool CanSendOpen(HttpContext context, long length, long offset, long count)
        => length > 0 && offset <= length && count > 0 && count <= length - offset && count >= _minimumSize
            && !(context.Response.ContentLength < count);

    /// <summary>Reduces a rate to the share of the bytes that Kestrel counts with a <see cref="CountedWriter"/>.</summary>
    internal MinDataRate Reduce(MinDataRate rate)
    {
        ReducedRate? reduced = Volatile.Read(ref _reducedRate);
        if (reduced?.Full != rate)
        {
            reduced = new ReducedRate(rate, new MinDataRate(rate.BytesPerSecond / CountedWriter.Share, rate.GracePeriod));
            Volatile.Write(ref _reducedRate, reduced);
        }

        return reduced.Reduced;
    }

    internal void LogFailed(string? path, Exception exception) => _logger.LogSendFailed(path, exception);

    // By name, because a reference would make every application depend on the package of the test host.
    private static bool IsTestHost(IHttpResponseBodyFeature feature)
        => feature.GetType().FullName == "Microsoft.AspNetCore.TestHost.ResponseFeature";

    private sealed record ReducedRate(MinDataRate Full, MinDataRate Reduced);
}
