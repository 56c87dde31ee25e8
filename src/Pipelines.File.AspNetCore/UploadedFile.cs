using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>The file that an upload becomes, whole or not at all.</summary>
internal static class UploadedFile
{
    /// <summary>Opens it beside its name. Everything that can be known before a byte is read is thrown here.</summary>
    internal static FilePipeWriter Create(string path, SaveBodyOptions options) => FilePipeWriter.Create(path, new FilePipeWriterOptions
    {
        Replace = true,
        Mode = options.Overwrite ? FileMode.Create : FileMode.CreateNew,
        FlushGuarantee = options.Durable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind,
        ReplacesLinks = true,
        UnixCreateMode = options.UnixFileMode,
    });

    /// <summary>Gives it its name.</summary>
    internal static async Task<long> CompleteAsync(FilePipeWriter file, long length)
    {
        await file.CompleteAsync().ConfigureAwait(false);
        FilePipelinesMetrics.Saved();
        return length;
    }

    /// <summary>Leaves nothing of it.</summary>
    internal static ValueTask GiveUpAsync(FilePipeWriter file)
    {
        FilePipelinesMetrics.Broke();
        return file.DisposeAsync();
    }

    internal static void ThrowIfTooLong(long length, long maxLength)
    {
        if (length > maxLength)
        {
            throw TooLong(maxLength);
        }
    }

    internal static BadHttpRequestException TooLong(long maxLength, Exception? cause = null)
        => new($"What is to be saved is longer than the {maxLength} bytes that are allowed.", StatusCodes.Status413PayloadTooLarge, cause!);
}
