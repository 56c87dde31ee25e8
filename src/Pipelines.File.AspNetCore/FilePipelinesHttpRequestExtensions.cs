using System.Buffers;
using System.IO.Pipelines;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.WebUtilities;
using Microsoft.Net.Http.Headers;
using Pipelines.File;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.Http;

/// <summary>Receives files.</summary>
public static class FilePipelinesHttpRequestExtensions
{
    /// <summary>What a chunked body may have on the wire for each byte of it: one in a chunk by itself has five around it, and a few more where the client writes zeros in front of its length.</summary>
    private const int FramedBytesPerByte = 8;

    /// <summary>And for what comes once: extensions, the last chunk.</summary>
    private const int FramedBytes = 64 * 1024;

    // So that the limit is a long.
    private static readonly long s_longestBody = (long.MaxValue - FramedBytes) / FramedBytesPerByte;

    /// <summary>How long a client that sent too much has for taking the response.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(2);

    /// <summary>
    /// Saves the body to a file, whole or not at all, as <see cref="FilePipeWriterOptions.Replace"/> does: it is written beside its name, which it gets when the body has ended and
    /// everything is written, and is gone when anything fails.
    /// </summary>
    /// <remarks>
    /// <para>The body is saved as it is. A form's (<c>multipart/form-data</c>, <c>curl -F</c>) is refused: its files are inside, as sections, for
    /// <see cref="FilePipelinesMultipartSectionExtensions.SaveSectionAsync"/>.</para>
    /// <para>Memory stays small however slow the disk is: the client has to wait once <see cref="FilePipeWriterOptions.PauseWriterThreshold"/> bytes are not written yet.</para>
    /// <para>What is not whole has no name on Linux, where the file system can do that, and so is gone with a process that is killed. Elsewhere it is called <c>.pipelines-file-</c> and 16
    /// hexadecimal digits; <c>find FOLDER -name '.pipelines-file-*' -mmin +1440</c> lists those of yesterday and before, and <c>-delete</c> behind that removes them.</para>
    /// <para>The folder has to be there. A symbolic link of that name is replaced, not followed. A file that replaces another has the permissions of that one, from the first byte on,
    /// and a file that may not be written is not replaced. Messages of exceptions hold the path: they are for a log, not for a client.</para>
    /// </remarks>
    /// <param name="request">The request. Nobody has read its body yet.</param>
    /// <param name="path">The file: absolute, or relative to the current directory. It is taken as it is: do not pass what a client sent without checking it.</param>
    /// <param name="options">How to save; <see langword="null"/> for the defaults.</param>
    /// <param name="cancellationToken">Gives up, and leaves nothing.</param>
    /// <returns>How many bytes the file has.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="request"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="BadHttpRequestException">
    /// The body broke off, or is a part of a file, with a Content-Range (StatusCode 400); is longer than allowed (413); is a <c>multipart/*</c> one, or has a Content-Encoding (415); a
    /// precondition is not met (412); <see cref="SaveBodyOptions.Inspect"/> has refused it (422, or its own). One that is too long, and chunked or announced to a server without a limit, ends the connection 2 s behind the response.
    /// </exception>
    /// <exception cref="FileExistsException">There is such a file, and <see cref="SaveBodyOptions.Overwrite"/> is <see langword="false"/>.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder.</exception>
    /// <exception cref="UnauthorizedAccessException">The folder, or the file that is to be replaced, may not be written to; or the name is that of a folder.</exception>
    /// <exception cref="PathTooLongException">The name is too long, which is known before the body is read.</exception>
    /// <exception cref="IOException">The connection broke; or a write, the sync or the renaming failed. If it was the sync of the folder, the file is there.</exception>
    /// <exception cref="OperationCanceledException">It was canceled, or another's call of <see cref="PipeReader.CancelPendingRead"/> ended the reading.</exception>
    public static async Task<long> SaveBodyAsync(this HttpRequest request, string path, SaveBodyOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        ArgumentException.ThrowIfNullOrEmpty(path);
        options ??= SaveBodyOptions.Default;
        options.Validate();
        cancellationToken.ThrowIfCancellationRequested();
        try
        {
            return await SaveAsync(request, path, options, cancellationToken).ConfigureAwait(false);
        }
        catch (Exception e)
        {
            FilePipelinesMetrics.Broke(e);
            throw;
        }
    }

    private static async Task<long> SaveAsync(HttpRequest request, string path, SaveBodyOptions options, CancellationToken cancellationToken)
    {
        bool isFramed = request.ContentLength is null && HttpProtocol.IsHttp11(request.Protocol);
        if (options.MaxLength is long maxLength)
        {
            IHttpMaxRequestBodySizeFeature? limit = request.HttpContext.Features.Get<IHttpMaxRequestBodySizeFeature>();
            if (request.ContentLength > maxLength)
            {
                // The server reads a body that nobody has read, up to its limit, and may have none.
                if (HttpProtocol.IsHttp11(request.Protocol) && limit is { MaxRequestBodySize: null })
                {
                    EndConnection(request.HttpContext);
                }

                ThrowIfNotTheFile(request, options);
                throw UploadedFile.TooLong(maxLength);
            }

            if (limit is { IsReadOnly: false })
            {
                // Kestrel counts what frames the chunks, too; here the body alone is counted, and of all that frames it there is an end as well.
                limit.MaxRequestBodySize = isFramed ? maxLength <= s_longestBody ? (maxLength * FramedBytesPerByte) + FramedBytes : long.MaxValue : maxLength;
            }
        }

        ThrowIfNotTheFile(request, options);

        // Everything that can be known is known before the body is asked for, so that a client that waits for 100 Continue need not send it.
        UploadedFile file = UploadedFile.Create(path, options);
        try
        {
            await CopyAsync(request.BodyReader, file, cancellationToken).ConfigureAwait(false);
            await file.CompleteAsync(cancellationToken).ConfigureAwait(false);
            return file.Length;
        }
        catch (Exception e)
        {
            await file.GiveUpAsync().ConfigureAwait(false);
            if (isFramed && options.MaxLength is not null && e is BadHttpRequestException { StatusCode: StatusCodes.Status413PayloadTooLarge })
            {
                EndConnection(request.HttpContext);
            }

            throw;
        }
    }

    private static async Task CopyAsync(PipeReader body, UploadedFile file, CancellationToken cancellationToken)
    {
        while (true)
        {
            ReadResult read = await body.ReadAsync(cancellationToken).ConfigureAwait(false);
            try
            {
                // One flush for all its segments, where CopyToAsync makes one for each.
                foreach (ReadOnlyMemory<byte> segment in read.Buffer)
                {
                    file.Took(segment.Span);
                    file.Writer.Write(segment.Span);
                }
            }
            finally
            {
                body.AdvanceTo(read.Buffer.End);
            }

            if (read.IsCanceled)
            {
                throw new OperationCanceledException("The reading of the body was canceled.", cancellationToken);
            }

            await file.FlushAsync(cancellationToken).ConfigureAwait(false);
            if (read.IsCompleted)
            {
                return;
            }
        }
    }

    /// <summary>What is not the file itself would be saved as if it were: a form has it inside, between boundaries and headers; a range is a part of it (RFC 9110, 14.5); an encoding hides it.</summary>
    private static void ThrowIfNotTheFile(HttpRequest request, SaveBodyOptions options)
    {
        ThrowIfMultipart(request);
        if (request.Headers.ContentRange.Count > 0)
        {
            throw new BadHttpRequestException($"The body is a part of a file (Content-Range: {request.Headers.ContentRange}), and would be saved as the whole.", StatusCodes.Status400BadRequest);
        }

        if (!options.KeepContentEncoding && request.Headers.GetCommaSeparatedValues(HeaderNames.ContentEncoding).Any(static coding => !coding.Equals("identity", StringComparison.OrdinalIgnoreCase)))
        {
            throw new BadHttpRequestException(
                $"The body is encoded (Content-Encoding: {request.Headers.ContentEncoding}), and would be saved so: add request decompression, or set KeepContentEncoding.",
                StatusCodes.Status415UnsupportedMediaType);
        }
    }

    /// <summary>What a browser's form sends is not the file: that is in there, between boundaries and headers, and would be saved along with them.</summary>
    private static void ThrowIfMultipart(HttpRequest request)
    {
        if (request.ContentType?.TrimStart().StartsWith("multipart/", StringComparison.OrdinalIgnoreCase) == true)
        {
            throw new BadHttpRequestException(
                $"SaveBodyAsync saves a body as it is, and one of the type '{request.ContentType}' has its files inside: read its sections with Microsoft.AspNetCore.WebUtilities.MultipartReader, and save each with SaveSectionAsync.",
                StatusCodes.Status415UnsupportedMediaType);
        }
    }

    /// <summary>
    /// Has the connection end behind the response: the server would read what is still to come of the body, as fast as it comes, up to its limit. The client has a moment to take the
    /// response before that.
    /// </summary>
    private static void EndConnection(HttpContext context)
    {
        if (context.Features.Get<IConnectionLifetimeFeature>() is not { } connection)
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
            // Where nobody has caught the exception, the server answers by itself after this, and ends the connection.
            if (context.Response.HasStarted)
            {
                await Task.Delay(s_patience, connection.ConnectionClosed).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
                connection.Abort();
            }
        });
    }
}
