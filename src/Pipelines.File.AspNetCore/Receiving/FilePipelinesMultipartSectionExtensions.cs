using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Http;
using Microsoft.Net.Http.Headers;
using Pipelines.File;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.WebUtilities;

/// <summary>Saves the files of a form.</summary>
public static class FilePipelinesMultipartSectionExtensions
{
    /// <summary>The number of bytes after which the file is flushed.</summary>
    private const int BytesPerFlush = 64 * 1024;

    /// <summary>The minimum memory for a read, bytes: the default buffer size of a <see cref="MultipartReader"/>.</summary>
    private const int MinimumRoom = 4096;

    /// <summary>As many as ASP.NET Core allows in a form that it reads itself (FormOptions.ValueCountLimit).</summary>
    private const int DefaultMaxSections = 1024;

    // Which form a section is of, as long as somebody has the section.
    private static readonly ConditionalWeakTable<MultipartSection, UploadRequest> s_forms = [];

    /// <summary>
    /// Reads the sections of a <c>multipart/*</c> body, one after the other as they come; at most 1,024. A section is valid until you ask
    /// for the next one.
    /// </summary>
    /// <inheritdoc cref="ReadSectionsAsync(HttpRequest, int, CancellationToken)"/>
    public static IAsyncEnumerable<MultipartSection> ReadSectionsAsync(
        this HttpRequest request, CancellationToken cancellationToken = default)
        => request.ReadSectionsAsync(DefaultMaxSections, cancellationToken);

    /// <summary>
    /// Reads the sections of a <c>multipart/*</c> body, one after the other as they come. A section is valid until you ask for the next
    /// one.
    /// </summary>
    /// <param name="request">The request. Its body must not have been read.</param>
    /// <param name="maxSections">The maximum number of sections; a form with more ends with status 413.</param>
    /// <param name="cancellationToken">Ends the reading with <see cref="OperationCanceledException"/>.</param>
    /// <exception cref="ArgumentNullException"><paramref name="request"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxSections"/> is negative.</exception>
    /// <exception cref="InvalidOperationException">
    /// The body was read before; for example by the model binding of a controller (<see cref="DisableFormValueModelBindingAttribute"/>), or
    /// by the antiforgery middleware, which reads its token from the form if it is not in a header.
    /// </exception>
    /// <exception cref="BadHttpRequestException">
    /// The body is not <c>multipart/*</c> (StatusCode 415); the form broke off or is malformed, or the antiforgery middleware has found no
    /// valid token (400); it has too many sections, or is longer than the server allows (413).
    /// </exception>
    public static IAsyncEnumerable<MultipartSection> ReadSectionsAsync(
        this HttpRequest request, int maxSections, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        ArgumentOutOfRangeException.ThrowIfNegative(maxSections);
        UploadRequest upload = new(request.HttpContext);
        try
        {
            if (!MediaTypeHeaderValue.TryParse(request.ContentType, out MediaTypeHeaderValue? type)
                || !type.Type.Equals("multipart", StringComparison.OrdinalIgnoreCase)
                || HeaderUtilities.RemoveQuotes(type.Boundary).Value is not { Length: > 0 } boundary)
            {
                throw new BadHttpRequestException(
                    $"The body is not a multipart form: '{request.ContentType}'.", StatusCodes.Status415UnsupportedMediaType);
            }

            upload.ThrowIfReadOrForged(isCompared: false);
            return ReadSectionsAsync(new MultipartReader(boundary, request.Body, BytesPerFlush), upload, maxSections, cancellationToken);
        }
        catch (Exception e)
        {
            upload.Broke(e, UploadStage.Checking);
            throw;
        }
    }

    /// <summary>
    /// Saves one section of a <c>multipart/*</c> body to a file, whole or not at all, as
    /// <see cref="FilePipelinesHttpRequestExtensions.SaveBodyAsync(HttpRequest, string, SaveBodyOptions?, CancellationToken)"/> saves a
    /// body. The section is not buffered in memory or in a temporary file.
    /// </summary>
    /// <remarks>
    /// <para>The server limits the request as a whole (Kestrel's MaxRequestBodySize, 30,000,000 bytes by default;
    /// <c>[RequestSizeLimit]</c>). Set that limit before you read the first section. <see cref="SaveBodyOptions.MaxLength"/> limits only
    /// this section. Do not remove the limit of the request: the server still reads the rest of a section that is too long, up to that
    /// limit.</para>
    /// <para>Sections come from <see cref="ReadSectionsAsync(HttpRequest, CancellationToken)"/>, or from your own
    /// <see cref="MultipartReader"/>; for that one a <c>bufferSize</c> of 65,536 is faster than the default of 4,096 bytes. The file name
    /// that the client has sent (<c>section.GetContentDispositionHeader()</c>) is not a path: check it before you use it.</para>
    /// <para>The remarks of SaveBodyAsync about names, folders, symbolic links, permissions and messages hold here, too.</para>
    /// </remarks>
    /// <param name="section">The section. Its body must not have been read.</param>
    /// <param name="path">
    /// The path of the file, absolute or relative to the current directory. Check it first if a part of it comes from a client.
    /// </param>
    /// <param name="options">How to save; <see langword="null"/> means the defaults, which do not limit the section.</param>
    /// <param name="cancellationToken">Cancels the saving; nothing stays.</param>
    /// <returns>What a client gets to know about the new file: length, hash, entity tag, whether it replaced one.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="section"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty, or contains a NUL, as a name of a client may.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="InvalidOperationException">A part of the section was read before.</exception>
    /// <exception cref="BadHttpRequestException">
    /// The server responds with its StatusCode. 400: the form broke off or is malformed. 412: a precondition is not met. 413: the section
    /// is longer than the options, the reader or the server allow. 415: it has a Content-Encoding or a Content-Transfer-Encoding. 422, or
    /// another status that it chose: <see cref="SaveBodyOptions.InspectAsync"/> has refused the upload. 503: it has failed.
    /// </exception>
    /// <exception cref="FileExistsException">
    /// The file exists, and <see cref="SaveBodyOptions.Overwrite"/> is <see langword="false"/>.
    /// </exception>
    /// <exception cref="DirectoryNotFoundException">The folder does not exist.</exception>
    /// <exception cref="UnauthorizedAccessException">
    /// You may not write to the folder or to the file that would be replaced, or the path is that of a folder.
    /// </exception>
    /// <exception cref="PathTooLongException">The name is too long. This is thrown before the section is read.</exception>
    /// <exception cref="IOException">
    /// The connection broke, or a write, the sync or the renaming failed. If the sync of the folder failed, the new file has its name.
    /// </exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public static async Task<SavedFile> SaveSectionAsync(
        this MultipartSection section, string path, SaveBodyOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(section);
        ArgumentException.ThrowIfNullOrEmpty(path);
        options ??= SaveBodyOptions.Default;
        options.Validate();
        UploadRequest upload = s_forms.TryGetValue(section, out UploadRequest? known) ? known : new UploadRequest(context: null);
        return await UploadedFile.SaveAsync(
            path, options, upload, () => Begin(section, options), (file, stop) => CopyAsync(section.Body, file, stop), cancellationToken)
            .ConfigureAwait(false);
    }

    /// <summary>Refuses a section that was read in part, or would be saved encoded.</summary>
    private static void Begin(MultipartSection section, SaveBodyOptions options)
    {
        if (PositionOf(section.Body) > 0)
        {
            throw new InvalidOperationException("A part of the section was already read, and would be missing in the file.");
        }

        if (section.Headers is { } headers && !options.KeepContentEncoding)
        {
            FilePipelinesHttpRequestExtensions.ThrowIfEncoded(
                "section", HeaderNames.ContentEncoding, headers.GetValueOrDefault(HeaderNames.ContentEncoding), "identity");

            // RFC 7578, 4.7: browsers do not send it, and ASP.NET Core ignores it.
            const string TransferEncoding = "Content-Transfer-Encoding";
            FilePipelinesHttpRequestExtensions.ThrowIfEncoded(
                "section", TransferEncoding, headers.GetValueOrDefault(TransferEncoding), "7bit", "8bit", "binary");
        }
    }

    private static async IAsyncEnumerable<MultipartSection> ReadSectionsAsync(
        MultipartReader form, UploadRequest upload, int maxSections, [EnumeratorCancellation] CancellationToken cancellationToken)
    {
        for (int sections = 0; await ReadNextSectionAsync(form, upload, cancellationToken).ConfigureAwait(false) is { } section;)
        {
            if (++sections > maxSections)
            {
                BadHttpRequestException tooMany = new(
                    $"The form has more than the {maxSections} sections that are allowed.", StatusCodes.Status413PayloadTooLarge);
                upload.Broke(tooMany, UploadStage.Reading);
                throw tooMany;
            }

            s_forms.Add(section, upload);
            yield return section;
        }
    }

    private static async Task<MultipartSection?> ReadNextSectionAsync(
        MultipartReader form, UploadRequest upload, CancellationToken cancellationToken)
    {
        try
        {
            return await form.ReadNextSectionAsync(cancellationToken).ConfigureAwait(false);
        }
        catch (Exception e)
        {
            Exception error = e is InvalidDataException || e.GetType() == typeof(IOException)
                ? new BadHttpRequestException("The form broke off or is malformed.", StatusCodes.Status400BadRequest, e) : e;

            // After a section that broke off there is no next one, and that was counted.
            if (!upload.IsCounted)
            {
                upload.Broke(error, UploadStage.Reading);
            }

            if (error != e)
            {
                throw error;
            }

            throw;
        }
    }

    private static async Task CopyAsync(Stream body, UploadedFile file, CancellationToken cancellationToken)
    {
        FilePipeWriter writer = file.Writer;
        while (true)
        {
            Memory<byte> memory = writer.GetMemory(MinimumRoom);
            file.Stage = UploadStage.Reading;
            int read = await ReadAsync(body, memory, file.Length, cancellationToken).ConfigureAwait(false);
            file.Stage = UploadStage.Writing;
            file.Append(memory.Span[..read]);
            writer.Advance(read);
            if (read == 0 || writer.UnflushedBytes >= BytesPerFlush)
            {
                await file.FlushAsync(cancellationToken).ConfigureAwait(false);
            }

            if (read == 0)
            {
                return;
            }
        }
    }

    private static async ValueTask<int> ReadAsync(Stream body, Memory<byte> memory, long length, CancellationToken cancellationToken)
    {
        try
        {
            return await body.ReadAsync(memory, cancellationToken).ConfigureAwait(false);
        }
        catch (IOException e) when (e.GetType() == typeof(IOException))
        {
            // MultipartReader throws this if the body ends before the boundary, and the server if the client resets the HTTP/2 stream.
            throw new BadHttpRequestException("The form broke off in the middle of a section.", StatusCodes.Status400BadRequest, e);
        }
        catch (InvalidDataException e)
        {
            // MultipartReader counts the bytes that exceed the limit, and then throws without returning them.
            throw PositionOf(body) > length
                ? new BadHttpRequestException("The section is longer than its reader allows (MultipartReader.BodyLengthLimit).",
                    StatusCodes.Status413PayloadTooLarge, e)
                : new BadHttpRequestException(
                    "The form, or the encoding of the section, is malformed.", StatusCodes.Status400BadRequest, e);
        }
    }

    /// <summary>How many bytes of a section were read; 0 if it does not tell.</summary>
    private static long PositionOf(Stream body)
    {
        try
        {
            return body.Position;
        }
        catch (NotSupportedException)
        {
            return 0;
        }
    }
}
