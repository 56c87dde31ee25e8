using System.Security.Cryptography;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// How <c>SaveBodyAsync</c> and <c>SaveSectionAsync</c> save an upload. An instance is immutable, and any number of requests may share it.
/// </summary>
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
    /// The maximum length of the upload, in bytes; <see langword="null"/>, the default, means the server's limit (Kestrel's
    /// MaxRequestBodySize, 30,000,000 by default). For a body it replaces the server's limit, unless the body is already being read. For a
    /// section of a form, <see langword="null"/> means no limit of its own.
    /// </summary>
    public long? MaxLength { get; init; }

    /// <summary>
    /// Whether an existing file of that name is replaced; <see langword="true"/> by default. The old file stays whole until the new one is.
    /// </summary>
    /// <remarks>
    /// With either value the file appears whole or not at all, as with <see cref="FilePipeWriterOptions.Replace"/>:
    /// <see langword="true"/> is its <see cref="FileMode.Create"/>, <see langword="false"/> its <see cref="FileMode.CreateNew"/>.
    /// </remarks>
    public bool Overwrite { get; init; } = true;

    /// <summary>
    /// Whether content and name are on the device when the saving completes; <see langword="false"/> by default. The file is synced, then
    /// gets its name, then its folder is synced (<see cref="FilePipeWriterOptions.Replace"/>). Otherwise a power failure may lose the file
    /// or leave it empty.
    /// </summary>
    public bool Durable { get; init; }

    /// <summary>
    /// What the page cache of the system keeps of the file; <see cref="FileCaching.Keep"/> by default. For large uploads that nobody reads
    /// soon, <see cref="FileCaching.DropBehind"/> leaves the cache to the files that are served.
    /// </summary>
    public FileCaching Caching { get; init; }

    /// <summary>
    /// The Unix permissions of a file that replaces no other, reduced by the umask; <see langword="null"/>, the default, means 0666. A file
    /// that replaces another one has the permissions of that file from the first byte on.
    /// </summary>
    public UnixFileMode? UnixCreateMode { get; init; }

    /// <summary>
    /// The value of the request header If-Match, or <see langword="null"/>, the default. The existing file must have one of these entity
    /// tags (<c>*</c> means any); otherwise nothing is saved, with status 412. The tags are checked before the body is read, and again when
    /// the new file takes its name: of several uploads of this process that name the same tag, one wins. Another process may still replace
    /// the file between the last check and the renaming. An empty value is malformed: status 400. RFC 9110, 13.1.1.
    /// </summary>
    public string? IfMatch { get; init; }

    /// <summary>
    /// The value of the request header If-None-Match, or <see langword="null"/>, the default. The existing file must not have any of these
    /// entity tags, and with <c>*</c> there must be no file; otherwise nothing is saved, with status 412. The tags are checked as for
    /// <see cref="IfMatch"/>; the system decides <c>*</c>, also between processes. RFC 9110, 13.1.2.
    /// </summary>
    public string? IfNoneMatch { get; init; }

    /// <summary>
    /// Computes the entity tag of a file as your clients know it, including the quotes; <see langword="null"/>, the default, means the tag
    /// of the static files middleware.
    /// </summary>
    public Func<FileInfo, string>? EntityTag { get; init; }

    /// <summary>
    /// Whether a body or a section with a Content-Encoding is saved as it is, still encoded; <see langword="false"/>, the default, refuses
    /// it with status 415. Request decompression that comes first removes the header, so this option does not matter then.
    /// </summary>
    public bool KeepContentEncoding { get; init; }

    /// <summary>
    /// Checks the whole upload before it gets its name, for example with a virus scanner; <see langword="null"/> by default. If it returns
    /// <see langword="false"/> or throws <see cref="InvalidDataException"/>, the upload is refused with status 422 and nothing appears. A
    /// <see cref="Microsoft.AspNetCore.Http.BadHttpRequestException"/> that it throws sets another status. Everything else that it throws
    /// is not the client's fault: it is logged, and the status is 503.
    /// </summary>
    public Func<UploadInspection, CancellationToken, ValueTask<bool>>? InspectAsync { get; init; }

    /// <summary>
    /// Called with the existing file right before it is replaced: after the last check of the preconditions, while no other upload of this
    /// process can take the name; <see langword="null"/> by default. It can make a backup, for example. If it throws, nothing is replaced,
    /// and the exception is that of the upload. It must not save to the same name, which would wait for itself.
    /// </summary>
    public Func<FileInfo, CancellationToken, ValueTask>? BeforeReplaceAsync { get; init; }

    /// <summary>
    /// Whether a version of a file is a second later than the one that it replaces, so that no two have the same Last-Modified or the same
    /// entity tag of the static files middleware; <see langword="true"/> by default. An upload then waits for the next second if it has to,
    /// and a name takes one version a second. With <see langword="false"/> it is later by the smallest step of the file system, and takes
    /// the name at once: have <see cref="EntityTag"/> compute tags of the content or of the whole time, which preconditions need then.
    /// </summary>
    public bool DistinctVersions { get; init; } = true;

    /// <summary>
    /// How many uploads of this process may wait for the name at once; 64 by default. One more is refused with status 503.
    /// </summary>
    public int MaxWaiting { get; init; } = 64;

    /// <summary>
    /// The hash to compute while the bytes come, for <see cref="UploadInspection.Hash"/> and <see cref="SavedFile.Hash"/>;
    /// <see langword="null"/>, the default, computes none.
    /// </summary>
    public HashAlgorithmName? Hash { get; init; }

    /// <summary>
    /// Receives the number of bytes that have come so far, after each piece and at the end; <see langword="null"/> by default. It is called
    /// within the request, so a slow receiver slows the upload.
    /// </summary>
    public IProgress<long>? Progress { get; init; }

    /// <exception cref="ArgumentException">Preconditions need tags that are finer than a second.</exception>
    /// <exception cref="ArgumentOutOfRangeException">A value is out of its range.</exception>
    internal void Validate()
    {
        ArgumentOutOfRangeException.ThrowIfNegative(MaxWaiting, nameof(MaxWaiting));
        if (!DistinctVersions && EntityTag is null && (IfMatch is not null || IfNoneMatch is not null))
        {
            throw new ArgumentException(
                "Two versions of a second have the same entity tag: set EntityTag, or leave DistinctVersions.", nameof(EntityTag));
        }

        ArgumentOutOfRangeException.ThrowIfNegative(MaxLength ?? 0, nameof(MaxLength));
        if (UnixCreateMode is { } mode && (mode & ~(UnixFileMode)0xFFF) != 0)
        {
            throw new ArgumentOutOfRangeException(nameof(UnixCreateMode), mode, "The value has bits that are not permissions.");
        }
    }
}
