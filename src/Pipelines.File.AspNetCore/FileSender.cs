using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;

namespace Pipelines.File.AspNetCore;

/// <summary>The middleware: what all requests of one application share, and the decision whose body feature is taken over.</summary>
internal sealed partial class FileSender(ILogger logger, OpenFiles files, int segmentSize, long minimumSize)
{
    // Kestrel's body is the same object for all requests of a connection (of an HTTP/2 stream, which is used again), and so is ours: no
    // request costs one.
    private readonly ConditionalWeakTable<IHttpResponseBodyFeature, FileSendingFeature> _features = [];

    // The data rate that the server demands and the one that a send asks for instead; immutable, so that any thread may replace it.
    private SharedRate? _sharedRate;

    internal OpenFiles Files => files;

    internal int SegmentSize => segmentSize;

    internal async Task InvokeAsync(HttpContext context, RequestDelegate next)
    {
        IFeatureCollection features = context.Features;
        IHttpResponseBodyFeature? inner = features.Get<IHttpResponseBodyFeature>();
        bool isKestrels = inner?.GetType().Assembly == typeof(KestrelServer).Assembly;
        if (inner is null || !(isKestrels || IsTestHosts(inner)))
        {
            await next(context).ConfigureAwait(false);
            return;
        }

        FileSendingFeature sending = isKestrels
            ? _features.GetOrAdd(inner, static (inner, sender) => new FileSendingFeature(sender, inner), this)
            : new FileSendingFeature(this, inner);
        sending.Begin(context, isKestrels);
        features.Set<IHttpResponseBodyFeature>(sending);
        try
        {
            await next(context).ConfigureAwait(false);
        }
        finally
        {
            // Whoever wraps the body further in puts back what it found; one that does not is left as it would be without us.
            if (features.Get<IHttpResponseBodyFeature>() == sending)
            {
                features.Set(inner);
            }
        }
    }

    /// <summary>
    /// Whether the server would do nothing but copy these bytes of a file into the body, as far as can be told before it is open.
    /// </summary>
    internal bool CanSend(HttpContext context, long offset, long? count)
    {
        if (offset < 0 || count <= 0 || count < minimumSize)
        {
            return false;
        }

        // Where there is no body the server swallows what is written or throws, before anything has started; and it throws for more than
        // was announced.
        HttpResponse response = context.Response;
        return !HttpMethods.IsHead(context.Request.Method)
            && response.StatusCode
                is not (StatusCodes.Status204NoContent or StatusCodes.Status205ResetContent or StatusCodes.Status304NotModified)
            && !(response.ContentLength < count);
    }

    /// <summary>The same, once the file is open and its length known.</summary>
    internal bool CanSendOpen(HttpContext context, long length, long offset, long count)
        => length > 0 && offset <= length && count > 0 && count <= length - offset && count >= minimumSize
            && !(context.Response.ContentLength < count);

    /// <summary>The part of a rate that <see cref="CountedWriter"/> lets Kestrel count.</summary>
    internal MinDataRate RateOfShare(MinDataRate rate)
    {
        SharedRate? shared = Volatile.Read(ref _sharedRate);
        if (shared?.Whole != rate)
        {
            shared = new SharedRate(rate, new MinDataRate(rate.BytesPerSecond / CountedWriter.Share, rate.GracePeriod));
            Volatile.Write(ref _sharedRate, shared);
        }

        return shared.OfShare;
    }

    [LoggerMessage(1, LogLevel.Error, "The connection was aborted in the middle of sending '{Path}'.", EventName = "SendFailed")]
    internal partial void LogFailed(string? path, Exception exception);

    // By name, as the test host is a package that no application should need, and the rest of a name that matches costs nothing.
    private static bool IsTestHosts(IHttpResponseBodyFeature feature)
        => feature.GetType().FullName == "Microsoft.AspNetCore.TestHost.ResponseFeature";

    private sealed record SharedRate(MinDataRate Whole, MinDataRate OfShare);
}
