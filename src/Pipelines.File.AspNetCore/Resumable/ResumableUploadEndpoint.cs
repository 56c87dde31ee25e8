using System.Diagnostics;
using System.Globalization;
using System.IO.Pipelines;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Routing;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Primitives;
using Microsoft.Net.Http.Headers;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The tus resumable upload protocol 1.0.0 (https://tus.io/protocols/resumable-upload): its core, and the extensions of
/// <see cref="Extensions"/>.
/// </summary>
/// <param name="options">The options.</param>
/// <param name="storeOf">Where the uploads are that a request is for; <see langword="null"/>: nowhere.</param>
/// <param name="logger">Where refused requests are logged.</param>
/// <param name="stopping">
/// Ends the reading of a body, and what is done with a whole upload. The end of the request does not: the server still gives out bytes that
/// it has, and what is whole is finished also if the client has gone.
/// </param>
internal sealed class ResumableUploadEndpoint(
    ResumableUploadOptions options, Func<HttpContext, UploadStore?> storeOf, ILogger logger, CancellationToken stopping)
{
    internal const string IdParameter = "resumableUploadId";
    private const string Version = "1.0.0";
    private const string BodyType = "application/offset+octet-stream";
    private const string Extensions = "creation,creation-with-upload,creation-defer-length,expiration,checksum,checksum-trailer,"
        + "termination,concatenation";

    internal async Task InvokeAsync(HttpContext context)
    {
        HttpRequest request = context.Request;
        HttpResponse response = context.Response;
        if (options.AllowMethodOverride && HttpMethods.IsPost(request.Method)
            && request.Headers["X-HTTP-Method-Override"] is [{ Length: > 0 } meant])
        {
            // Whoever is asked from here on judges what is done.
            request.Method = meant.ToUpperInvariant();
        }

        string method = request.Method;
        string? id = context.GetRouteValue(IdParameter) as string;
        response.Headers["Tus-Resumable"] = Version;
        using Activity? activity = FilePipelinesActivities.Begin("pipelines.file.upload");
        activity?.SetTag("http.request.method", method);
        try
        {
            if (method == HttpMethods.Options)
            {
                Describe(response);
                return;
            }

            if (request.Headers["Tus-Resumable"] != Version)
            {
                response.Headers["Tus-Version"] = Version;
                throw new BadHttpRequestException("Tus-Resumable has to be 1.0.0.", StatusCodes.Status412PreconditionFailed);
            }

            if (storeOf(context) is not { } store)
            {
                throw Missing();
            }

            await ((method, id) switch
            {
                ("POST", null) => CreateAsync(context, store),
                ("HEAD", not null) => TellAsync(context, store, id),
                ("PATCH", not null) => AppendAsync(context, store, id),
                ("DELETE", not null) => RemoveAsync(context, store, id),
                _ => RefuseMethod(response, id is null),
            }).ConfigureAwait(false);
        }
        catch (BadHttpRequestException e) when (!response.HasStarted)
        {
            logger.LogUploadRefused(e.StatusCode, method);
            activity.Fail(TextOf(e.StatusCode));
            await AnswerAsync(response, e.StatusCode, method == HttpMethods.Head ? "" : e.Message).ConfigureAwait(false);
        }
        catch (IOException e) when (FullDisk.IsReasonOf(e) && !response.HasStarted)
        {
            await AnswerAsync(response, StatusCodes.Status507InsufficientStorage, "There is no room.").ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (stopping.IsCancellationRequested && !response.HasStarted)
        {
            // The client goes on when the application is there again.
            await AnswerAsync(response, StatusCodes.Status503ServiceUnavailable, "The server stops.").ConfigureAwait(false);
        }
    }

    private static Task AnswerAsync(HttpResponse response, int status, string text)
    {
        response.StatusCode = status;
        response.ContentType = "text/plain; charset=utf-8";
        return response.WriteAsync(text, CancellationToken.None);
    }

    private void Describe(HttpResponse response)
    {
        response.StatusCode = StatusCodes.Status204NoContent;
        response.Headers["Tus-Version"] = Version;
        response.Headers["Tus-Extension"] = Extensions;
        response.Headers["Tus-Checksum-Algorithm"] = UploadChecksum.Algorithms;
        if (options.MaxLength is { } maxLength)
        {
            response.Headers["Tus-Max-Size"] = TextOf(maxLength);
        }
    }

    private static Task RefuseMethod(HttpResponse response, bool isCreation)
    {
        response.Headers.Allow = isCreation ? "OPTIONS, POST" : "OPTIONS, HEAD, PATCH, DELETE";
        throw new BadHttpRequestException("The method does not fit.", StatusCodes.Status405MethodNotAllowed);
    }

    private async Task CreateAsync(HttpContext context, UploadStore store)
    {
        HttpRequest request = context.Request;
        IHeaderDictionary headers = context.Response.Headers;
        UploadState state = new()
        {
            Metadata = Single(request, "Upload-Metadata"),
            Concat = Single(request, "Upload-Concat"),
            Owner = OwnerOf(context),
        };
        if (state.Metadata?.Length > options.MaxMetadataLength)
        {
            throw new BadHttpRequestException("Upload-Metadata is too long.", StatusCodes.Status431RequestHeaderFieldsTooLarge);
        }

        string[] parts = state.IsFinal ? PartsOf(state.Concat!) : [];
        using IDisposable? kept = parts.Length > 0 ? store.Keep(parts) : null;
        UploadState[] states = [.. parts.Select(part => Part(store, part, state.Owner))];
        long? length = state.IsFinal ? SumOf(states) : LengthOf(request);
        if (length is null == (Single(request, "Upload-Defer-Length") != "1") || (state.IsFinal && LengthOf(request) is not null))
        {
            throw Bad("Upload-Length, or Upload-Defer-Length: 1, is needed; a final upload has neither.");
        }

        if (length > options.MaxLength)
        {
            throw UploadedFile.TooLong(options.MaxLength.Value);
        }

        bool hasBody = HasBody(request) && !state.IsFinal;
        if (hasBody)
        {
            ThrowIfNotBytes(request);
        }

        state = state with { Length = length };
        string id = UploadStore.NewId();
        await AllowAsync(
            context, id, state, state.IsFinal ? ResumableUploadOperation.Concatenate : ResumableUploadOperation.Create,
            [.. parts.Zip(states, (part, its) => new ResumableUpload(context, part, its))]).ConfigureAwait(false);
        using StoredUpload upload = await store.CreateAsync(id, state).ConfigureAwait(false);
        headers.Location = $"{request.PathBase}{request.Path}".TrimEnd('/') + "/" + id;
        try
        {
            await (hasBody ? ReceiveAsync(context, store, upload)
                : FinishAsync(context, store, upload, parts, new UploadRequest(context))).ConfigureAwait(false);
        }
        catch when (state.IsFinal || upload.Stage == UploadStage.Checking || upload.IsRemoved)
        {
            // No request goes on with it: the client makes another one of the same parts, or its body was refused before or after it was
            // read.
            headers.Remove("Location");
            upload.Remove();
            throw;
        }

        context.Response.StatusCode = StatusCodes.Status201Created;
        Tell(headers, upload.State);
        if (!hasBody)
        {
            headers.Remove("Upload-Offset");
        }
    }

    private async Task TellAsync(HttpContext context, UploadStore store, string id)
    {
        UploadState state = Existing(context, store, id, store.Peek(id));
        await AllowAsync(context, id, state, ResumableUploadOperation.Read, []).ConfigureAwait(false);
        IHeaderDictionary headers = context.Response.Headers;
        headers.CacheControl = "no-store";
        Tell(headers, state);
        if (state.IsFinal && !state.IsFinished)
        {
            headers.Remove("Upload-Offset");
        }

        headers["Upload-Length"] = state.Length is { } length ? TextOf(length) : StringValues.Empty;
        headers["Upload-Defer-Length"] = state.Length is null ? "1" : StringValues.Empty;
        headers["Upload-Metadata"] = state.Metadata;
        headers["Upload-Concat"] = state.Concat;
    }

    private async Task AppendAsync(HttpContext context, UploadStore store, string id)
    {
        HttpRequest request = context.Request;
        ThrowIfNotBytes(request);
        long offset = Number(Single(request, "Upload-Offset")) ?? throw Bad("Upload-Offset is needed.");
        UploadState before = Existing(context, store, id, store.Read(id));
        await AllowAsync(context, id, before, ResumableUploadOperation.Append, []).ConfigureAwait(false);
        if (before.IsFinal)
        {
            throw new BadHttpRequestException("A final upload is only read.", StatusCodes.Status403Forbidden);
        }

        using StoredUpload upload = await store.TakeOverAsync(id).ConfigureAwait(false) ?? throw Missing();
        if (offset != upload.State.Offset || (upload.State.IsFinished && HasBody(request) && request.ContentLength != 0))
        {
            throw new BadHttpRequestException("The upload is at another offset.", StatusCodes.Status409Conflict);
        }

        if (LengthOf(request) is { } length && length != upload.State.Length)
        {
            if (upload.State.Length is not null)
            {
                throw Bad("The length of an upload does not change.");
            }

            await upload.SetLengthAsync(length).ConfigureAwait(false);
        }

        if (!upload.State.IsFinished)
        {
            await ReceiveAsync(context, store, upload).ConfigureAwait(false);
        }

        context.Response.StatusCode = StatusCodes.Status204NoContent;
        Tell(context.Response.Headers, upload.State);
    }

    private async Task RemoveAsync(HttpContext context, UploadStore store, string id)
    {
        UploadState state = Existing(context, store, id, store.Read(id));
        await AllowAsync(context, id, state, ResumableUploadOperation.Delete, []).ConfigureAwait(false);
        using StoredUpload upload = await store.TakeOverAsync(id).ConfigureAwait(false) ?? throw Missing();
        upload.Remove(isAsked: true);
        context.Response.StatusCode = StatusCodes.Status204NoContent;
    }

    /// <summary>Appends the body of a request, and finishes the upload if that is then whole.</summary>
    private async Task ReceiveAsync(HttpContext context, UploadStore store, StoredUpload upload)
    {
        HttpRequest request = context.Request;
        UploadRequest counted = new(context);
        UploadChecksum? checksum = UploadChecksum.Parse(Single(request, UploadChecksum.Header));
        bool isAnnounced = request.GetDeclaredTrailers().Contains(UploadChecksum.Header, StringComparer.OrdinalIgnoreCase);
        long most = (upload.State.Length ?? options.MaxLength ?? long.MaxValue) - upload.State.Offset;
        bool isChunked = request.ContentLength is null && HttpProtocol.IsHttp11(request.Protocol);
        if (request.ContentLength > most)
        {
            throw UploadedFile.TooLong(most);
        }

        counted.ThrowIfReadOrForged(isCompared: request.ContentLength is not null);
        FilePipelinesHttpRequestExtensions.SetLimit(
            context.Features.Get<IHttpMaxRequestBodySizeFeature>(), Math.Max(0, most), isChunked);
        try
        {
            await upload.AppendAsync(
                request.BodyReader,
                checksum is not null || isAnnounced,
                length =>
                {
                    counted.ThrowIfReadInPart(length);
                    return checksum ?? UploadChecksum.Parse(TrailerOf(request));
                },
                stopping).ConfigureAwait(false);
        }
        catch (Exception e)
        {
            counted.Broke(e, upload.Stage, upload.State.Offset);
            if ((e as BadHttpRequestException)?.StatusCode
                is StatusCodes.Status413PayloadTooLarge or StatusCodes.Status507InsufficientStorage
                or StatusCodes.Status408RequestTimeout or StatusCodes.Status423Locked)
            {
                FilePipelinesHttpRequestExtensions.EndConnection(context);
            }

            throw;
        }

        await FinishAsync(context, store, upload, [], counted).ConfigureAwait(false);
    }

    /// <summary>Adds the parts of a final upload, and finishes an upload that is whole.</summary>
    private async Task FinishAsync(
        HttpContext context, UploadStore store, StoredUpload upload, string[] parts, UploadRequest counted)
    {
        try
        {
            // Nobody waits for the copy of a client that has left: it is removed, and made again.
            using CancellationTokenSource copying = CancellationTokenSource.CreateLinkedTokenSource(stopping, context.RequestAborted);
            foreach (string part in parts)
            {
                FilePipeReader reader = OpenPart(store, part);
                await using (reader.ConfigureAwait(false))
                {
                    await upload.AppendAsync(reader, isChecked: false, static _ => null, copying.Token).ConfigureAwait(false);
                }
            }

            if (parts.Length > 0 && upload.State.Offset != upload.State.Length)
            {
                throw Bad("A part of the final upload has lost bytes.");
            }

            if (upload.State.Offset == upload.State.Length)
            {
                await upload.FinishAsync(context, counted, stopping).ConfigureAwait(false);
            }
        }
        catch (Exception e)
        {
            counted.Broke(e, upload.Stage, upload.State.Offset);
            throw;
        }
    }

    private static void Tell(IHeaderDictionary headers, UploadState state)
    {
        headers["Upload-Offset"] = TextOf(state.Offset);
        headers["Upload-Expires"] = state.Expires.ToString("R", CultureInfo.InvariantCulture);
    }

    private async ValueTask AllowAsync(
        HttpContext context, string id, UploadState state, ResumableUploadOperation operation, IReadOnlyList<ResumableUpload> parts)
    {
        ResumableUploadRequest wanted = new(context, id, state, operation, parts);
        if (options.OnRequestAsync is { } allow)
        {
            await allow(wanted, context.RequestAborted).ConfigureAwait(false);
        }

        if (wanted.RefusedWith is { } status)
        {
            throw new BadHttpRequestException("The application has refused the request.", status);
        }
    }

    private string? OwnerOf(HttpContext context)
        => options.Owner is not { } owner ? null : owner(context)
            ?? throw new BadHttpRequestException("The request is nobody's.", StatusCodes.Status403Forbidden);

    private UploadState Existing(HttpContext context, UploadStore store, string id, UploadState? state)
        => OwnerOf(context) is var owner && (state is null || state.Owner != owner) ? throw Missing()
            : state.Expires > store.Now || store.IsUnderWay(id) ? state
            : throw new BadHttpRequestException("The upload has expired.", StatusCodes.Status410Gone);

    private static BadHttpRequestException Missing() => new("There is no such upload.", StatusCodes.Status404NotFound);

    /// <summary>The identifiers of the parts of a final upload.</summary>
    private static string[] PartsOf(string concat)
    {
        const string Final = "final;";
        string[] urls = concat.StartsWith(Final, StringComparison.Ordinal)
            ? concat[Final.Length..].Split(' ', StringSplitOptions.RemoveEmptyEntries) : [];
        string[] ids = [.. urls.Select(static url => url[(url.LastIndexOf('/') + 1)..])];
        return ids.Length > 0 && ids.All(UploadStore.IsId) && ids.Distinct().Count() == ids.Length
            && concat.All(static c => c is >= ' ' and < '\x7F') ? ids
            : throw Bad("Upload-Concat is malformed.");
    }

    private static UploadState Part(UploadStore store, string id, string? owner)
        => store.Read(id) is { IsPartial: true, IsFinished: true } part && part.Owner == owner && part.Expires > store.Now ? part
            : throw PartIsMissing();

    // Without MaxLength, parts may be longer together than a file can be.
    private static long SumOf(UploadState[] parts)
    {
        Int128 sum = 0;
        foreach (UploadState part in parts)
        {
            sum += part.Length!.Value;
        }

        return sum <= long.MaxValue ? (long)sum : throw UploadedFile.TooLong(long.MaxValue);
    }

    private static FilePipeReader OpenPart(UploadStore store, string id)
    {
        try
        {
            return SpareDescriptors.Open(store.PartPathOf(id), static path => FilePipeReader.Create(path));
        }
        catch (FileNotFoundException)
        {
            // Removed since its state was read.
            throw PartIsMissing();
        }
    }

    private static BadHttpRequestException PartIsMissing() => Bad("A part of the final upload is not there, or not whole.");

    private static void ThrowIfNotBytes(HttpRequest request)
    {
        if (!MediaTypeHeaderValue.TryParse(request.ContentType, out MediaTypeHeaderValue? type)
            || !type.MediaType.Equals(BodyType, StringComparison.OrdinalIgnoreCase) || request.Headers.ContentEncoding.Count > 0)
        {
            throw new BadHttpRequestException($"The body has to be {BodyType}, not encoded.", StatusCodes.Status415UnsupportedMediaType);
        }
    }

    private static bool HasBody(HttpRequest request)
        => request.ContentLength is > 0 || (request.ContentLength is null && request.ContentType is not null
            && request.HttpContext.Features.Get<IHttpRequestBodyDetectionFeature>()?.CanHaveBody != false);

    private static string? TrailerOf(HttpRequest request)
        => request.CheckTrailersAvailable() && request.GetTrailer(UploadChecksum.Header) is [{ } value] ? value : null;

    private static long? LengthOf(HttpRequest request) => Number(Single(request, "Upload-Length"));

    private static string? Single(HttpRequest request, string name)
        => request.Headers[name] is { Count: > 0 } values
            ? values.Count == 1 ? values[0] : throw Bad($"{name} is there more than once.") : null;

    private static long? Number(string? text)
        => text is null ? null : long.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out long number) ? number
            : throw Bad($"'{text}' is not a number of bytes.");

    private static string TextOf(long number) => number.ToString(CultureInfo.InvariantCulture);

    private static BadHttpRequestException Bad(string message) => new(message, StatusCodes.Status400BadRequest);
}
