namespace Pipelines.File.AspNetCore;

/// <summary>
/// A whole upload that has no name yet, for <see cref="SaveBodyOptions.Inspect"/>. It is valid until Inspect has returned.
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
}
