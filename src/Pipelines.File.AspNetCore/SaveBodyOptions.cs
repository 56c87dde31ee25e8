namespace Pipelines.File.AspNetCore;

/// <summary>How a request body is saved. An instance is immutable and may be shared by any number of requests.</summary>
public sealed class SaveBodyOptions
{
    internal static SaveBodyOptions Default { get; } = new();

    /// <summary>
    /// The most bytes that are taken, or <see langword="null"/>, the default, for the server's own limit (Kestrel's MaxRequestBodySize, 30,000,000 by default). It replaces
    /// that limit for the request, where the body is not being read yet.
    /// </summary>
    public long? MaxLength { get; init; }

    /// <summary>Whether a file that is there already is replaced; <see langword="true"/> by default. It is there, whole, until the new one is.</summary>
    public bool Overwrite { get; init; } = true;

    /// <summary>
    /// Whether the file is on the device, under its name, when the saving completes: it is synced, then gets its name, then its folder is synced
    /// (<see cref="FilePipeWriterOptions.Replace"/>). <see langword="false"/> by default: a power failure may then lose it, or leave it empty.
    /// </summary>
    public bool Durable { get; init; }

    /// <summary>
    /// The permissions of a file that replaces no other, less the umask, on Unix; <see langword="null"/>, the default, is those of every new file (0666). One that replaces another
    /// has the permissions of that, from the first byte on. Nothing but the bits that the enum names.
    /// </summary>
    public UnixFileMode? UnixFileMode { get; init; }

    /// <exception cref="ArgumentOutOfRangeException">A value is out of its range.</exception>
    internal void Validate()
    {
        if (MaxLength is long maxLength)
        {
            ArgumentOutOfRangeException.ThrowIfNegative(maxLength, nameof(MaxLength));
        }

        if (UnixFileMode is { } mode && (mode & ~(UnixFileMode)0xFFF) != 0)
        {
            throw new ArgumentOutOfRangeException(nameof(UnixFileMode), mode, "It has bits that are no permissions.");
        }
    }
}
