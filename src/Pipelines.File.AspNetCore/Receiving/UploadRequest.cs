using System.Diagnostics;
using Microsoft.AspNetCore.Antiforgery;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;
using BadHttpRequestException = Microsoft.AspNetCore.Http.BadHttpRequestException;

namespace Pipelines.File.AspNetCore;

/// <summary>The request that an upload comes with: what is checked before its body is read, and where it is counted and logged.</summary>
/// <param name="context">The request; <see langword="null"/> if a section came without one.</param>
internal sealed class UploadRequest(HttpContext? context)
{
    private const string Advice = "Read it only here: in a controller put [DisableFormValueModelBinding] on the action; a client of an "
        + "endpoint with an antiforgery token sends the token in a header.";

    // AppContext, read by System.IO.Compression when it is first used.
    private const string StrictSwitch = "System.IO.Compression.UseStrictValidation";

    // Interlocked: 1 when the warning was logged.
    private static int s_isWarned;

    private readonly long _begin = Stopwatch.GetTimestamp();
    private readonly FilePipelinesMetrics _metrics = FilePipelinesMetrics.Of(context?.RequestServices);

    /// <summary>Whether a failure of this form was counted, so that the end of its enumeration does not count it again.</summary>
    internal bool IsCounted { get; private set; }

    /// <summary>Checks that nobody has read the body, as far as the server or the stream tells, and that it is not forged.</summary>
    /// <param name="isCompared">
    /// Whether its length will be compared with Content-Length. Otherwise Kestrel tells whether the reading of its own body has begun.
    /// </param>
    /// <exception cref="InvalidOperationException">The body was read.</exception>
    /// <exception cref="BadHttpRequestException">The antiforgery middleware has found no valid token (400).</exception>
    internal void ThrowIfReadOrForged(bool isCompared)
    {
        IFeatureCollection features = context!.Features;
        if (features.Get<IAntiforgeryValidationFeature>() is { IsValid: false } forged)
        {
            throw new BadHttpRequestException("The antiforgery token is missing or wrong.", StatusCodes.Status400BadRequest, forged.Error!);
        }

        if (features.Get<IFormFeature>()?.Form is not null)
        {
            throw new InvalidOperationException("The body was already read as a form. " + Advice);
        }

        Stream body = context.Request.Body;
        if (body.CanSeek ? body.Position != 0
            : !isCompared && body.GetType().Assembly == typeof(KestrelServer).Assembly
                && features.Get<IHttpMaxRequestBodySizeFeature>() is { IsReadOnly: true })
        {
            throw new InvalidOperationException("Somebody has begun to read the body, and its beginning may be missing. " + Advice
                + " Whoever looks into the body before that enables its buffering, and rewinds it; or looks into it in InspectAsync.");
        }
    }

    /// <summary>Checks that the body had the bytes that were announced, unless middleware has decompressed it.</summary>
    /// <exception cref="InvalidOperationException">A part of the body was read before.</exception>
    internal void ThrowIfReadInPart(long length)
    {
        HttpRequest request = context!.Request;
        bool isDecompressed = request.Body.GetType().Assembly.GetName().Name == "Microsoft.AspNetCore.RequestDecompression";
        if (!isDecompressed && length < request.ContentLength)
        {
            throw new InvalidOperationException($"{request.ContentLength - length} of the {request.ContentLength} bytes of the body were "
                + $"read before, and would be missing in the file. {Advice} Middleware that shortens a body also has to change "
                + "Content-Length.");
        }

        if (isDecompressed && !(AppContext.TryGetSwitch(StrictSwitch, out bool isStrict) && isStrict)
            && Interlocked.Exchange(ref s_isWarned, 1) == 0 && Logger is { } logger)
        {
            logger.LogLenientDecompression(StrictSwitch);
        }
    }

    /// <summary>Counts an upload that was saved.</summary>
    internal void Saved(long length) => _metrics.Saved(Stopwatch.GetElapsedTime(_begin), length);

    /// <summary>Counts an upload that has failed.</summary>
    /// <returns>What it is counted as.</returns>
    internal string Broke(Exception reason, UploadStage stage, long length = 0)
    {
        IsCounted |= stage == UploadStage.Reading;
        string kind = KindOf(reason, stage, context?.RequestAborted.IsCancellationRequested == true);
        _metrics.UploadBroke(kind, Stopwatch.GetElapsedTime(_begin), length);
        if (context is not null && kind is not ("broken_off" or "canceled" or "read_before")
            && UploadRefusal.StatusOf(reason) is { } status)
        {
            // What the application throws may be for its own eyes.
            bool isOurs = reason is BadHttpRequestException && stage is not (UploadStage.Inspecting or UploadStage.Replacing);
            context.Items[typeof(UploadRefusal)] = new UploadRefusal(reason, status, kind, isOurs ? reason.Message : null);
        }

        return kind;
    }

    /// <summary>Logs what an inspection has thrown, which is not the client's fault.</summary>
    internal void LogInspection(Exception exception)
    {
        if (Logger is { } logger)
        {
            logger.LogInspectionFailed(exception);
        }
    }

    private ILogger? Logger => context?.RequestServices?.GetService<ILoggerFactory>()?.CreateLogger("Pipelines.File.AspNetCore");

    private static string KindOf(Exception reason, UploadStage stage, bool isAborted) => (reason, stage) switch
    {
        (OperationCanceledException, _) => "canceled",
        (FileExistsException, _) => "exists",
        (BadHttpRequestException { StatusCode: StatusCodes.Status503ServiceUnavailable, InnerException: not null }, UploadStage.Inspecting)
            => "inspection_failed",
        (BadHttpRequestException, UploadStage.Inspecting) => "inspection",
        (BadHttpRequestException, UploadStage.Replacing) => "refused",
        (BadHttpRequestException { StatusCode: StatusCodes.Status503ServiceUnavailable }, _) => "busy",
        (BadHttpRequestException { StatusCode: StatusCodes.Status412PreconditionFailed }, _) => "precondition",
        (BadHttpRequestException { StatusCode: StatusCodes.Status413PayloadTooLarge }, _) => "too_long",
        (BadHttpRequestException { StatusCode: StatusCodes.Status415UnsupportedMediaType }, _) => "unsupported",
        (BadHttpRequestException { InnerException: AntiforgeryValidationException }, _) => "antiforgery",
        (BadHttpRequestException { InnerException: InvalidDataException }, _) => "malformed",
        (BadHttpRequestException, UploadStage.Checking) => "malformed",
        (InvalidOperationException, UploadStage.Checking) => "read_before",
        (_, UploadStage.Reading) or (ConnectionAbortedException, _) => "broken_off",

        // The server ends the use of the body at any moment.
        (not UnauthorizedAccessException, UploadStage.Writing) when isAborted => "broken_off",
        _ => "failed",
    };
}
