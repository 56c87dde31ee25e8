using Microsoft.AspNetCore.Http;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// A whole upload that has no name yet, for <see cref="SaveBodyOptions.InspectAsync"/>. It is valid until InspectAsync has returned.
/// </summary>
public sealed class UploadInspection
{
    internal UploadInspection(FilePipeReader reader, long length, ReadOnlyMemory<byte> hash)
    {
        Reader = reader;
        Length = length;
        Hash = hash;
    }

    /// <summary>A reader for the bytes of the upload, from the first one. It is completed when the inspection has ended.</summary>
    public FilePipeReader Reader { get; }

    /// <summary>The length of the upload, in bytes.</summary>
    public long Length { get; }

    /// <summary>The hash of the upload, if <see cref="SaveBodyOptions.Hash"/> asks for one; otherwise empty.</summary>
    public ReadOnlyMemory<byte> Hash { get; }

    /// <summary>Has a whole upload inspected.</summary>
    /// <param name="inspect">The application's inspection.</param>
    /// <param name="handle">The upload.</param>
    /// <param name="length">Its length, bytes.</param>
    /// <param name="hash">Its hash, or <see langword="null"/>.</param>
    /// <param name="request">Where a failure is logged.</param>
    /// <param name="stage">Is told what happens.</param>
    /// <param name="cancellationToken">Passed to the inspection.</param>
    /// <exception cref="BadHttpRequestException">The upload is refused (422), or the inspection has failed (503).</exception>
    internal static async ValueTask RunAsync(
        Func<UploadInspection, CancellationToken, ValueTask<bool>> inspect, SafeFileHandle handle, long length, byte[]? hash,
        UploadRequest request, Action<UploadStage> stage, CancellationToken cancellationToken)
    {
        stage(UploadStage.Inspecting);
        FilePipeReader reader = FilePipeReader.Create(handle, new FilePipeReaderOptions { LeaveOpen = true });
        await using (reader.ConfigureAwait(false))
        {
            InvalidDataException? reason = null;
            try
            {
                if (await inspect(new UploadInspection(reader, length, hash), cancellationToken).ConfigureAwait(false))
                {
                    stage(UploadStage.Writing);
                    return;
                }
            }
            catch (InvalidDataException e)
            {
                reason = e;
            }
            catch (Exception e) when (e is not BadHttpRequestException && !cancellationToken.IsCancellationRequested)
            {
                request.LogInspection(e);
                throw new BadHttpRequestException("The upload could not be inspected.", StatusCodes.Status503ServiceUnavailable, e);
            }

            throw new BadHttpRequestException("The inspection has refused the upload.", StatusCodes.Status422UnprocessableEntity, reason!);
        }
    }
}
