using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Http;
using Microsoft.Net.Http.Headers;
using Pipelines.File;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.WebUtilities;

/// <summary>Receives the files of a form.</summary>
public static class FilePipelinesMultipartSectionExtensions
{
    /// <summary>Bytes that are handed to the file at a time.</summary>
    private const int BytesPerFlush = 64 * 1024;

    /// <summary>The least room for a read, bytes: what a reader of sections has at a time by default.</summary>
    private const int MinimumRoom = 4096;

    /// <summary>
    /// The sections of a <c>multipart/*</c> body, one by one as they come; each is valid until the next is asked for. What is no form, or a malformed one, is the client's mistake and thrown as such.
    /// </summary>
    /// <param name="request">The request. Nobody has read its body yet.</param>
    /// <param name="cancellationToken">Gives up.</param>
    /// <exception cref="ArgumentNullException"><paramref name="request"/> is <see langword="null"/>.</exception>
    /// <exception cref="BadHttpRequestException">The body is no <c>multipart/*</c> one (StatusCode 415); the form broke off or is malformed (400); it is longer than the server allows (413).</exception>
    public static IAsyncEnumerable<MultipartSection> ReadSectionsAsync(this HttpRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        if (!MediaTypeHeaderValue.TryParse(request.ContentType, out MediaTypeHeaderValue? type) || !type.Type.Equals("multipart", StringComparison.OrdinalIgnoreCase)
            || HeaderUtilities.RemoveQuotes(type.Boundary).Value is not { Length: > 0 } boundary)
        {
            throw new BadHttpRequestException($"This is no form that can be read: '{request.ContentType}'.", StatusCodes.Status415UnsupportedMediaType);
        }

        return ReadSectionsAsync(new MultipartReader(boundary, request.Body, BytesPerFlush), cancellationToken);
    }

    /// <summary>
    /// Saves one section of a <c>multipart/*</c> body to a file, whole or not at all, as
    /// <see cref="FilePipelinesHttpRequestExtensions.SaveBodyAsync(HttpRequest, string, SaveBodyOptions?, CancellationToken)"/> does a body: nothing is buffered, in memory or in a temporary file of the form's.
    /// </summary>
    /// <remarks>
    /// <para>The request as a whole is limited by the server (Kestrel's MaxRequestBodySize, 30,000,000 bytes by default; <c>[RequestSizeLimit]</c>), which the application sets before it reads the first
    /// section; <see cref="SaveBodyOptions.MaxLength"/> limits this section only. Leave the request a limit: what follows a section that is too long is still read, up to that.</para>
    /// <para>Sections come from <see cref="ReadSectionsAsync(HttpRequest, CancellationToken)"/>, or from a <see cref="MultipartReader"/> of yours, which reads as much at a time as its
    /// <c>bufferSize</c>, 4,096 bytes by default: 65,536 is faster. The file name that the client has sent
    /// (<c>section.GetContentDispositionHeader()</c>) is no path: do not save to it without checking it.</para>
    /// <para>What is said there of names, folders, symbolic links, permissions and messages goes for this, too.</para>
    /// </remarks>
    /// <param name="section">The section. Nobody has read its body yet.</param>
    /// <param name="path">The file: absolute, or relative to the current directory. It is taken as it is.</param>
    /// <param name="options">How to save; <see langword="null"/> for the defaults, which set no limit to the section.</param>
    /// <param name="cancellationToken">Gives up, and leaves nothing.</param>
    /// <returns>How many bytes the file has.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="section"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="BadHttpRequestException">The form broke off or is malformed (StatusCode 400); or the section is longer than allowed here, by the reader or by the server (413).</exception>
    /// <exception cref="FileExistsException">There is such a file, and <see cref="SaveBodyOptions.Overwrite"/> is <see langword="false"/>.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder.</exception>
    /// <exception cref="UnauthorizedAccessException">The folder, or the file that is to be replaced, may not be written to; or the name is that of a folder.</exception>
    /// <exception cref="PathTooLongException">The name is too long, which is known before the section is read.</exception>
    /// <exception cref="IOException">The connection broke; or a write, the sync or the renaming failed. If it was the sync of the folder, the file is there.</exception>
    /// <exception cref="OperationCanceledException">It was canceled.</exception>
    public static async Task<long> SaveSectionAsync(this MultipartSection section, string path, SaveBodyOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(section);
        ArgumentException.ThrowIfNullOrEmpty(path);
        options ??= SaveBodyOptions.Default;
        options.Validate();
        cancellationToken.ThrowIfCancellationRequested();
        UploadedFile? file = null;
        try
        {
            file = UploadedFile.Create(path, options);
            await CopyAsync(section.Body, file, cancellationToken).ConfigureAwait(false);
            await file.CompleteAsync(cancellationToken).ConfigureAwait(false);
            return file.Length;
        }
        catch (Exception e)
        {
            FilePipelinesMetrics.Broke(e);
            if (file is not null)
            {
                await file.GiveUpAsync().ConfigureAwait(false);
            }

            throw;
        }
    }

    private static async IAsyncEnumerable<MultipartSection> ReadSectionsAsync(MultipartReader form, [EnumeratorCancellation] CancellationToken cancellationToken)
    {
        while (await ReadNextSectionAsync(form, cancellationToken).ConfigureAwait(false) is { } section)
        {
            yield return section;
        }
    }

    private static async Task<MultipartSection?> ReadNextSectionAsync(MultipartReader form, CancellationToken cancellationToken)
    {
        try
        {
            return await form.ReadNextSectionAsync(cancellationToken).ConfigureAwait(false);
        }
        catch (Exception e) when (e is InvalidDataException || e.GetType() == typeof(IOException))
        {
            throw new BadHttpRequestException("The form broke off, or is malformed.", StatusCodes.Status400BadRequest, e);
        }
    }

    private static async Task CopyAsync(Stream body, UploadedFile file, CancellationToken cancellationToken)
    {
        FilePipeWriter writer = file.Writer;
        while (true)
        {
            Memory<byte> memory = writer.GetMemory(MinimumRoom);
            int read = await ReadAsync(body, memory, file.Length, cancellationToken).ConfigureAwait(false);
            file.Took(memory.Span[..read]);
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
            // What MultipartReader throws where the body ends before the boundary, and the server where the client takes an HTTP/2 stream back.
            throw new BadHttpRequestException("The form broke off in the middle of a section.", StatusCodes.Status400BadRequest, e);
        }
        catch (InvalidDataException e)
        {
            throw HasTaken(body, length)
                ? new BadHttpRequestException("The section is longer than its reader allows (MultipartReader.BodyLengthLimit).", StatusCodes.Status413PayloadTooLarge, e)
                : new BadHttpRequestException("The form, or what the section is packed in, is malformed.", StatusCodes.Status400BadRequest, e);
        }
    }

    /// <summary>Whether the stream has read more than it has given: <see cref="MultipartReader"/> counts what is too long before it throws.</summary>
    private static bool HasTaken(Stream body, long length)
    {
        try
        {
            return body.Position > length;
        }
        catch (NotSupportedException)
        {
            return false;
        }
    }
}
