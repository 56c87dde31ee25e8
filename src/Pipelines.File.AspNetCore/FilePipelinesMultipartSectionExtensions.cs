using Microsoft.AspNetCore.Http;
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
    /// Saves one section of a <c>multipart/*</c> body to a file, whole or not at all, as
    /// <see cref="FilePipelinesHttpRequestExtensions.SaveBodyAsync(HttpRequest, string, SaveBodyOptions?, CancellationToken)"/> does a body: nothing is buffered, in memory or in a temporary file of the form's.
    /// </summary>
    /// <remarks>
    /// <para>The request as a whole is limited by the server (Kestrel's MaxRequestBodySize, 30,000,000 bytes by default; <c>[RequestSizeLimit]</c>), which the application sets before it reads the first
    /// section; <see cref="SaveBodyOptions.MaxLength"/> limits this section only. Leave the request a limit: what follows a section that is too long is still read, up to that.</para>
    /// <para>A <see cref="MultipartReader"/> reads as much at a time as its <c>bufferSize</c>, 4,096 bytes by default: 65,536 is faster. The file name that the client has sent
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
    /// <exception cref="BadHttpRequestException">The form broke off (StatusCode 400); or the section is longer than allowed here, by the reader or by the server (413).</exception>
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
        FilePipeWriter file = UploadedFile.Create(path, options);
        try
        {
            return await UploadedFile.CompleteAsync(file, await CopyAsync(section.Body, file, options.MaxLength ?? long.MaxValue, cancellationToken).ConfigureAwait(false)).ConfigureAwait(false);
        }
        catch
        {
            await UploadedFile.GiveUpAsync(file).ConfigureAwait(false);
            throw;
        }
    }

    private static async Task<long> CopyAsync(Stream body, FilePipeWriter file, long maxLength, CancellationToken cancellationToken)
    {
        for (long length = 0; ;)
        {
            int read = await ReadAsync(body, file.GetMemory(MinimumRoom), cancellationToken).ConfigureAwait(false);
            if (read == 0)
            {
                return length;
            }

            length += read;
            UploadedFile.ThrowIfTooLong(length, maxLength);
            file.Advance(read);
            if (file.UnflushedBytes >= BytesPerFlush)
            {
                // Durable is the whole, once, in the end.
                await file.FlushAsExactlyAsync(FlushGuarantee.WriteBehind, cancellationToken).ConfigureAwait(false);
            }
        }
    }

    private static async ValueTask<int> ReadAsync(Stream body, Memory<byte> memory, CancellationToken cancellationToken)
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
            throw new BadHttpRequestException("The section is longer than its reader allows (MultipartReader.BodyLengthLimit).", StatusCodes.Status413PayloadTooLarge, e);
        }
    }
}
