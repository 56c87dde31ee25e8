using System.Security.Cryptography;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// How <c>MapResumableUploads</c> receives uploads. An instance is immutable; the values are checked when the endpoint is mapped.
/// </summary>
/// <example>
/// <code>
/// using Pipelines.File.AspNetCore;
///
/// WebApplication app = WebApplication.Create(args);
/// app.MapResumableUploads("/uploads", new ResumableUploadOptions
/// {
///     Folder = "unfinished",
///     MaxLength = 10L &lt;&lt; 30,
///     OnCompletedAsync = async (upload, stop) =&gt; await upload.SaveAsync(Path.Combine("files", upload.Id), cancellationToken: stop),
/// });
/// app.Run();
/// </code>
/// </example>
public sealed class ResumableUploadOptions
{
    // A timer cannot wait longer, and nobody needs it.
    private static readonly TimeSpan s_longestExpiration = TimeSpan.FromDays(365);

    /// <summary>
    /// The folder of the uploads that are not finished: for each a file with its bytes and a small state file. Required. It is made if it
    /// does not exist, readable only by the user that makes it, and must hold nothing else. Put it on the file system where the files go:
    /// then an upload takes its name by renaming, and is copied otherwise. Several processes may share it, if the file system has locks.
    /// </summary>
    public string Folder { get; init; } = string.Empty;

    /// <summary>
    /// The maximum length of one upload, in bytes; <see langword="null"/>, the default, sets no limit. A longer one gets 413. The server's
    /// own limit (Kestrel's MaxRequestBodySize) does not hold for the requests of this endpoint.
    /// </summary>
    public long? MaxLength { get; init; }

    /// <summary>
    /// The maximum number of bytes of all uploads together that are not finished, by the lengths that they have announced;
    /// <see langword="null"/>, the default, sets no limit. An upload beyond it gets 507, and clients try again later. Each process counts
    /// the uploads that it has found in the folder at the start, and its own.
    /// </summary>
    public long? MaxTotalLength { get; init; }

    /// <summary>
    /// Whether the bytes up to an offset are on the device when a client is told the offset, and content and name of a finished upload when
    /// it is acknowledged; <see langword="false"/> by default. Otherwise a power failure may lose bytes that a client does not send again.
    /// A process that is killed loses none of them in either case.
    /// </summary>
    public bool Durable { get; init; }

    /// <summary>
    /// How long an upload is kept after its last request; a day by default, 1 s to 365 days. What nobody has finished by then is removed,
    /// and so is the memory of what was finished.
    /// </summary>
    public TimeSpan Expiration { get; init; } = TimeSpan.FromDays(1);

    /// <summary>
    /// The hash of the whole upload to compute, for <see cref="UploadInspection.Hash"/> and <see cref="CompletedUpload.Hash"/>;
    /// <see langword="null"/>, the default, computes none. The upload is read for it when it is complete.
    /// </summary>
    public HashAlgorithmName? Hash { get; init; }

    /// <summary>
    /// Called for each request that means an upload, also for the creation, before anything is done; <see langword="null"/> by default.
    /// <see cref="ResumableUpload.HttpContext"/> tells who asks for what. A <see cref="Microsoft.AspNetCore.Http.BadHttpRequestException"/>
    /// that it throws refuses the request with its status.
    /// </summary>
    public Func<ResumableUpload, CancellationToken, ValueTask>? OnRequestAsync { get; init; }

    /// <summary>
    /// Checks the whole upload, as <see cref="SaveBodyOptions.Inspect"/> does; <see langword="null"/> by default. If it returns
    /// <see langword="false"/> or throws <see cref="InvalidDataException"/>, the upload is removed, with status 422. A
    /// <see cref="Microsoft.AspNetCore.Http.BadHttpRequestException"/> that it throws sets another status. Everything else that it throws
    /// is logged, the status is 503, and the upload stays: the client can finish it later.
    /// </summary>
    public Func<UploadInspection, CancellationToken, ValueTask<bool>>? Inspect { get; init; }

    /// <summary>
    /// Called with each whole upload, before the client is told that it is; <see langword="null"/>, the default, lets it stay in
    /// <see cref="Folder"/>, under its <see cref="ResumableUpload.Id"/>. What it does not save (<see cref="CompletedUpload.SaveAsync"/>) is
    /// removed after it. If it throws, or the process is killed, it is called again when the client goes on. A
    /// <see cref="Microsoft.AspNetCore.Http.BadHttpRequestException"/> with a status of 400 to 499 refuses the upload, which is removed. Of
    /// partial uploads (concatenation) only the whole one that they become is given to it.
    /// </summary>
    public Func<CompletedUpload, CancellationToken, ValueTask>? OnCompletedAsync { get; init; }

    /// <exception cref="ArgumentException"><see cref="Folder"/> is empty.</exception>
    /// <exception cref="ArgumentOutOfRangeException">A value is out of its range.</exception>
    internal void Validate()
    {
        ArgumentException.ThrowIfNullOrEmpty(Folder);
        ArgumentOutOfRangeException.ThrowIfNegative(MaxLength ?? 0, nameof(MaxLength));
        ArgumentOutOfRangeException.ThrowIfNegative(MaxTotalLength ?? 0, nameof(MaxTotalLength));
        ArgumentOutOfRangeException.ThrowIfLessThan(Expiration, TimeSpan.FromSeconds(1), nameof(Expiration));
        ArgumentOutOfRangeException.ThrowIfGreaterThan(Expiration, s_longestExpiration, nameof(Expiration));
    }
}
