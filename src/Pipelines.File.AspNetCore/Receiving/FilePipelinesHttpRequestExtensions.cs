using System.Buffers;
using System.IO.Pipelines;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.WebUtilities;
using Microsoft.Extensions.Primitives;
using Microsoft.Net.Http.Headers;
using Pipelines.File;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.Http;

/// <summary>Saves request bodies to files.</summary>
public static class FilePipelinesHttpRequestExtensions
{
    /// <summary>
    /// How many bytes a chunked body may have on the wire for each byte of content: a chunk of one byte has five bytes around it, and a few
    /// more if the client writes leading zeros in its length.
    /// </summary>
    private const int ChunkedBytesPerByte = 8;

    /// <summary>How many bytes it may have in addition, for what comes once: chunk extensions, the last chunk.</summary>
    private const int ChunkedOverhead = 64 * 1024;

    // The longest body whose limit on the wire fits into a long, bytes.
    private static readonly long s_longestChunkedBody = (long.MaxValue - ChunkedOverhead) / ChunkedBytesPerByte;

    /// <summary>How long a client that sent too much may take to receive the response, before its connection ends.</summary>
    private static readonly TimeSpan s_abortDelay = TimeSpan.FromSeconds(2);

    /// <summary>
    /// Saves the request body to a file, whole or not at all. The file gets its name when the whole body is written; if anything fails,
    /// nothing of it stays.
    /// </summary>
    /// <remarks>
    /// <para>If the file replaces another one of the same second, this waits for the next second, so that no two versions have the same
    /// Last-Modified. Only uploads of this process wait for each other.</para>
    /// <para>The body is saved as it is. A form (<c>multipart/form-data</c>, <c>curl -F</c>) is refused, because its files are inside: save
    /// them with <see cref="FilePipelinesMultipartSectionExtensions.SaveSectionAsync"/>.</para>
    /// <para>A slow disk does not fill the memory: the client waits while <see cref="FilePipeWriterOptions.PauseWriterThreshold"/> bytes
    /// are not written yet.</para>
    /// <para>The folder must exist. A symbolic link of that name is replaced, not followed. A file that replaces another gets its
    /// permissions from the first byte on. A file without write permission is not replaced.</para>
    /// <para>On Linux the unfinished file has no name if the file system supports that, so a process that is killed leaves nothing. On
    /// other systems it is called <c>.pipelines-file-</c> and 16 hexadecimal digits; docs/writing.md says how to remove such files.</para>
    /// <para>The messages of the exceptions contain the path: write them to a log, but do not send them to a client.</para>
    /// </remarks>
    /// <param name="request">The request. Its body must not have been read.</param>
    /// <param name="path">
    /// The path of the file, absolute or relative to the current directory. Check it first if a part of it comes from a client.
    /// </param>
    /// <param name="options">How to save; <see langword="null"/> means the defaults.</param>
    /// <param name="cancellationToken">Cancels the saving; nothing stays.</param>
    /// <returns>What a client gets to know about the new file: length, hash, entity tag, whether it replaced one.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="request"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="path"/>, or <see cref="SaveBodyOptions.Hash"/>, is empty.</exception>
    /// <exception cref="System.Security.Cryptography.CryptographicException">There is no hash of that name.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="InvalidOperationException">
    /// The body was read before, as a form or in part; for example by the model binding of a controller
    /// (<see cref="DisableFormValueModelBindingAttribute"/>). On Kestrel, reading from a body without Content-Length is enough, also if
    /// nothing was consumed.
    /// </exception>
    /// <exception cref="BadHttpRequestException">
    /// The server responds with its StatusCode. 400: the body broke off, is a part of a file (Content-Range), cannot be decompressed, or
    /// a header is malformed; or the antiforgery middleware has found no valid token. 412: a precondition is not met. 413: the body is too
    /// long; a chunked body, or one that a server without a limit would read, also ends the connection 2 s after the response. 415: the
    /// body is <c>multipart/*</c>, or has a Content-Encoding or another Transfer-Encoding than chunked. 422, or another status that it
    /// chose: <see cref="SaveBodyOptions.InspectAsync"/> has refused the upload. 503: it has failed.
    /// </exception>
    /// <exception cref="FileExistsException">
    /// The file exists, and <see cref="SaveBodyOptions.Overwrite"/> is <see langword="false"/>.
    /// </exception>
    /// <exception cref="DirectoryNotFoundException">The folder does not exist.</exception>
    /// <exception cref="UnauthorizedAccessException">
    /// You may not write to the folder or to the file that would be replaced, or the path is that of a folder.
    /// </exception>
    /// <exception cref="PathTooLongException">The name is too long. This is thrown before the body is read.</exception>
    /// <exception cref="IOException">
    /// The connection broke (an HTTP/2 stream was reset), or a write, the sync or the renaming failed. If the sync of the folder failed,
    /// the new file has its name.
    /// </exception>
    /// <exception cref="OperationCanceledException">
    /// The token was canceled, or <see cref="PipeReader.CancelPendingRead"/> was called for the body.
    /// </exception>
    public static async Task<SavedFile> SaveBodyAsync(
        this HttpRequest request, string path, SaveBodyOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        ArgumentException.ThrowIfNullOrEmpty(path);
        options ??= SaveBodyOptions.Default;
        options.Validate();
        bool isChunked = request.ContentLength is null && HttpProtocol.IsHttp11(request.Protocol);
        try
        {
            UploadRequest upload = new(request.HttpContext);
            return await UploadedFile.SaveAsync(
                path,
                options,
                upload,
                () =>
                {
                    upload.ThrowIfReadOrForged(isCompared: request.ContentLength is not null);
                    Begin(request, options, isChunked);
                },
                async (file, stop) =>
                {
                    await CopyAsync(request.BodyReader, file, stop).ConfigureAwait(false);
                    file.Stage = UploadStage.Checking;
                    upload.ThrowIfReadInPart(file.Length);
                    file.Stage = UploadStage.Writing;
                },
                cancellationToken).ConfigureAwait(false);
        }
        catch (BadHttpRequestException e)
            when (isChunked && options.MaxLength is not null && e.StatusCode == StatusCodes.Status413PayloadTooLarge)
        {
            EndConnection(request.HttpContext);
            throw;
        }
    }

    /// <summary>
    /// Checks everything that can be checked before the body is read, so that a client that waits for 100 Continue need not send it.
    /// </summary>
    private static void Begin(HttpRequest request, SaveBodyOptions options, bool isChunked)
    {
        if (options.MaxLength is long maxLength)
        {
            IHttpMaxRequestBodySizeFeature? limit = request.HttpContext.Features.Get<IHttpMaxRequestBodySizeFeature>();
            if (request.ContentLength > maxLength)
            {
                // After the response, the server reads a body that nobody has read, up to its limit. If it has no limit, the connection
                // ends.
                if (limit is { MaxRequestBodySize: null })
                {
                    EndConnection(request.HttpContext);
                }

                ThrowIfNotWholeFile(request, options);
                throw UploadedFile.TooLong(maxLength);
            }

            SetLimit(limit, maxLength, isChunked);
        }

        ThrowIfNotWholeFile(request, options);
    }

    /// <summary>Replaces the server's limit of a body, where that is still possible.</summary>
    internal static void SetLimit(IHttpMaxRequestBodySizeFeature? limit, long maxLength, bool isChunked)
    {
        if (limit is { IsReadOnly: false })
        {
            // Kestrel's limit includes the bytes around the chunks. Only the content is counted here, so Kestrel's limit is larger, but
            // still bounds those bytes, too.
            limit.MaxRequestBodySize = isChunked
                ? maxLength <= s_longestChunkedBody ? (maxLength * ChunkedBytesPerByte) + ChunkedOverhead : long.MaxValue : maxLength;
        }
    }

    private static async Task CopyAsync(PipeReader body, UploadedFile file, CancellationToken cancellationToken)
    {
        while (true)
        {
            file.Stage = UploadStage.Reading;
            ReadResult read;
            try
            {
                read = await body.ReadAsync(cancellationToken).ConfigureAwait(false);
            }
            catch (InvalidDataException e)
            {
                // Request decompression.
                throw new BadHttpRequestException("The body cannot be decompressed.", StatusCodes.Status400BadRequest, e);
            }

            file.Stage = UploadStage.Writing;
            try
            {
                // One flush for all segments; CopyToAsync makes one for each.
                foreach (ReadOnlyMemory<byte> segment in read.Buffer)
                {
                    file.Append(segment.Span);
                    file.Writer.Write(segment.Span);
                }

                file.Stage = UploadStage.Reading;
            }
            finally
            {
                // It throws if the client has reset an HTTP/2 stream.
                body.AdvanceTo(read.Buffer.End);
            }

            if (read.IsCanceled)
            {
                throw new OperationCanceledException("The reading of the body was canceled.", cancellationToken);
            }

            file.Stage = UploadStage.Writing;
            await file.FlushAsync(cancellationToken).ConfigureAwait(false);
            if (read.IsCompleted)
            {
                return;
            }
        }
    }

    /// <summary>
    /// Refuses a body that is not the file itself: a form contains files between boundaries and headers; a range is a part of a file
    /// (RFC 9110, 14.5); a content encoding would be saved as content.
    /// </summary>
    private static void ThrowIfNotWholeFile(HttpRequest request, SaveBodyOptions options)
    {
        if (request.ContentType?.TrimStart().StartsWith("multipart/", StringComparison.OrdinalIgnoreCase) == true)
        {
            throw new BadHttpRequestException(
                $"SaveBodyAsync saves a body as it is, but a body of the type '{request.ContentType}' has its files inside: "
                + "enumerate request.ReadSectionsAsync(), and save each section with SaveSectionAsync.",
                StatusCodes.Status415UnsupportedMediaType);
        }

        if (request.Headers.ContentRange.Count > 0)
        {
            throw new BadHttpRequestException($"The body is a part of a file (Content-Range: {request.Headers.ContentRange}), "
                + "and would be saved as if it were the whole file.", StatusCodes.Status400BadRequest);
        }

        ThrowIfEncoded("body", HeaderNames.TransferEncoding, request.Headers.TransferEncoding, "chunked");
        if (!options.KeepContentEncoding)
        {
            ThrowIfEncoded("body", HeaderNames.ContentEncoding, request.Headers.ContentEncoding, "identity");
        }
    }

    /// <summary>Refuses what would be saved encoded (415).</summary>
    internal static void ThrowIfEncoded(string what, string header, StringValues value, params ReadOnlySpan<string> plain)
    {
        foreach (string coding in value.ToString().Split(',', StringSplitOptions.TrimEntries | StringSplitOptions.RemoveEmptyEntries))
        {
            if (!plain.Contains(coding, StringComparer.OrdinalIgnoreCase))
            {
                throw new BadHttpRequestException($"The {what} is encoded ({header}: {value}), and would be saved encoded.",
                    StatusCodes.Status415UnsupportedMediaType);
            }
        }
    }

    /// <summary>
    /// Ends the connection after the response; otherwise the server would read the rest of the body, as fast as it comes, up to its limit.
    /// The client has <see cref="s_abortDelay"/> to receive the response before that. From HTTP/2 on others have requests on the
    /// connection, and the server itself resets the one stream (RFC 9113, 8.1).
    /// </summary>
    internal static void EndConnection(HttpContext context)
    {
        if (!HttpProtocol.IsHttp11(context.Request.Protocol)
            || context.Features.Get<IConnectionLifetimeFeature>() is not { } connection)
        {
            return;
        }

        if (!context.Response.HasStarted)
        {
            context.Response.OnStarting(
                static response =>
                {
                    ((HttpResponse)response).Headers.Connection = "close";
                    return Task.CompletedTask;
                },
                context.Response);
        }

        context.Response.OnCompleted(async () =>
        {
            // If the response has not started, nobody has caught the exception: the server answers after this, and ends the connection.
            if (context.Response.HasStarted)
            {
                await Task.Delay(s_abortDelay, connection.ConnectionClosed).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
                connection.Abort();
            }
        });
    }
}
