namespace Pipelines.File.AspNetCore;

/// <summary>A whole upload that has no name yet, for <see cref="SaveBodyOptions.Inspect"/>. It is valid until that has returned.</summary>
public sealed class UploadInspection
{
    internal UploadInspection(FilePipeReader reader, long length, ReadOnlyMemory<byte> hash)
    {
        Reader = reader;
        Length = length;
        Hash = hash;
    }

    /// <summary>The bytes, from the first one on. It is completed when the inspection is over.</summary>
    public FilePipeReader Reader { get; }

    /// <summary>How many bytes it has.</summary>
    public long Length { get; }

    /// <summary>The hash of the bytes by <see cref="SaveBodyOptions.Hash"/>; empty where that names none.</summary>
    public ReadOnlyMemory<byte> Hash { get; }
}
