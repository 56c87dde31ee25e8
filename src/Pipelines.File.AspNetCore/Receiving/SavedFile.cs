namespace Pipelines.File.AspNetCore;

/// <summary>An upload that was saved: what a client gets to know about the new file.</summary>
public sealed class SavedFile
{
    internal SavedFile(long length, ReadOnlyMemory<byte> hash, string? entityTag, bool replaced)
    {
        Length = length;
        Hash = hash;
        EntityTag = entityTag;
        Replaced = replaced;
    }

    /// <summary>The length of the file, in bytes.</summary>
    public long Length { get; }

    /// <summary>The hash of the file, if <see cref="SaveBodyOptions.Hash"/> asks for one; otherwise empty.</summary>
    public ReadOnlyMemory<byte> Hash { get; }

    /// <summary>
    /// The entity tag of the file, including the quotes, for the header ETag of the response: that of the static files middleware, or of
    /// <see cref="SaveBodyOptions.EntityTag"/>. <see langword="null"/> if that could not read the file, because another program has
    /// taken it away since.
    /// </summary>
    public string? EntityTag { get; }

    /// <summary>Whether it has replaced a file, so that the response to a PUT is 200 or 204, and not 201.</summary>
    public bool Replaced { get; }
}
