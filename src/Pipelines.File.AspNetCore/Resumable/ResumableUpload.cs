using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>A resumable upload that a request means.</summary>
public class ResumableUpload
{
    internal ResumableUpload(HttpContext context, string id, UploadState state)
    {
        HttpContext = context;
        Id = id;
        Length = state.Length;
        IsPartial = state.IsPartial;
        Owner = state.Owner;
        Metadata = UploadMetadata.Parse(state.Metadata);
    }

    /// <summary>The request.</summary>
    public HttpContext HttpContext { get; }

    /// <summary>
    /// The last part of the upload's URL: 32 hexadecimal digits, chosen at random. Who knows it can go on with the upload.
    /// </summary>
    public string Id { get; }

    /// <summary>The length of the whole upload, in bytes; <see langword="null"/> as long as the client has not sent it.</summary>
    public long? Length { get; }

    /// <summary>Whether it is a part of a concatenation to come.</summary>
    public bool IsPartial { get; }

    /// <summary>
    /// Whose upload it is, as <see cref="ResumableUploadOptions.Owner"/> has returned at its creation; <see langword="null"/> without that.
    /// </summary>
    public string? Owner { get; }

    /// <summary>
    /// What the client has sent about the upload (Upload-Metadata), as UTF-8; Uppy and tus-js-client call the name of the file
    /// <c>filename</c>. Check it before it becomes a part of a path.
    /// </summary>
    public IReadOnlyDictionary<string, string> Metadata { get; }
}
