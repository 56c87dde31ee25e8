using System.Security.Cryptography;

namespace Pipelines.File.AspNetCore;

/// <summary>How a request body is saved. An instance is immutable and may be shared by any number of requests.</summary>
/// <example>
/// <code>
/// using Pipelines.File.AspNetCore;
///
/// WebApplication app = WebApplication.Create(args);
/// SaveBodyOptions options = new() { MaxLength = 1_000_000, Overwrite = false, Durable = true };
/// app.MapPut("/avatar", (HttpRequest request) => request.SaveBodyAsync("avatar.png", options));
/// app.Run();
/// </code>
/// </example>
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
    /// What the system's page cache keeps of the file; <see cref="FileCaching.Keep"/> by default. <see cref="FileCaching.DropBehind"/> leaves the cache to the files that are served, where uploads are
    /// large and nobody reads them soon.
    /// </summary>
    public FileCaching Caching { get; init; }

    /// <summary>
    /// The permissions of a file that replaces no other, less the umask, on Unix; <see langword="null"/>, the default, is those of every new file (0666). One that replaces another
    /// has the permissions of that, from the first byte on. Nothing but the bits that the enum names.
    /// </summary>
    public UnixFileMode? UnixFileMode { get; init; }

    /// <summary>
    /// The value of the header If-Match, or <see langword="null"/>, the default: the file that is replaced has to have one of these entity tags (<c>*</c>: any), or nothing is saved, with status 412.
    /// It is looked at before the body is read, and decided when the new file takes the name: of several uploads of this process that name the same tag one wins. Another process may come in between.
    /// </summary>
    /// <remarks>
    /// A new file that the second of its writing and its length would not tell from the one that it replaces gets the next second as its time, so that it has another tag.
    /// RFC 9110, 13.1.1.
    /// </remarks>
    public string? IfMatch { get; init; }

    /// <summary>
    /// The value of the header If-None-Match, or <see langword="null"/>, the default: the file that is replaced may have none of these entity tags, and with <c>*</c> there may be none, or
    /// nothing is saved, with status 412. Decided as <see cref="IfMatch"/>; <c>*</c> by the system, between all processes. RFC 9110, 13.1.2.
    /// </summary>
    public string? IfNoneMatch { get; init; }

    /// <summary>The entity tag that clients were told for a file, quotes included; <see langword="null"/>, the default, is that of the static files middleware.</summary>
    public Func<FileInfo, string>? EntityTag { get; init; }

    /// <summary>
    /// Whether a body with a Content-Encoding is saved as it is, still encoded; <see langword="false"/> by default: it is refused with status 415. Where request decompression has come first
    /// there is no such header any more.
    /// </summary>
    public bool KeepContentEncoding { get; init; }

    /// <summary>
    /// Looks at the whole upload before it gets its name: for scanners, quotas, types. <see langword="false"/>, or an exception, refuses it with status 422, or with that of the
    /// <see cref="Microsoft.AspNetCore.Http.BadHttpRequestException"/> that it throws, and then nothing appears. <see langword="null"/> by default.
    /// </summary>
    public Func<UploadInspection, CancellationToken, ValueTask<bool>>? Inspect { get; init; }

    /// <summary>The hash that <see cref="Inspect"/> gets, computed as the bytes come; <see langword="null"/>, the default: none.</summary>
    public HashAlgorithmName? Hash { get; init; }

    /// <summary>Is told how many bytes have come so far, from time to time and at the end, within the request; <see langword="null"/> by default.</summary>
    public IProgress<long>? Progress { get; init; }

    /// <exception cref="ArgumentOutOfRangeException">A value is out of its range.</exception>
    internal void Validate()
    {
        if (MaxLength is long maxLength)
        {
            ArgumentOutOfRangeException.ThrowIfNegative(maxLength, nameof(MaxLength));
        }

        if (!Enum.IsDefined(Caching))
        {
            throw new ArgumentOutOfRangeException(nameof(Caching), Caching, "Not a FileCaching.");
        }

        if (UnixFileMode is { } mode && (mode & ~(UnixFileMode)0xFFF) != 0)
        {
            throw new ArgumentOutOfRangeException(nameof(UnixFileMode), mode, "It has bits that are no permissions.");
        }
    }
}
