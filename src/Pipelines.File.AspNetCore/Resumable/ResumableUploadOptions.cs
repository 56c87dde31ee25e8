using System.Security.Cryptography;
using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// How <c>MapResumableUploads</c> receives uploads. The values are read and checked when the endpoint is mapped; those of
/// <c>AddResumableUploads</c> when the application starts.
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
    private static readonly TimeSpan s_longestIdleTimeout = TimeSpan.FromDays(1);

    /// <summary>
    /// The folder of the uploads that are not finished: for each a file with its bytes and a small state file. Required. It is made if it
    /// does not exist, readable only by the user that makes it, and must hold nothing else. Put it on the file system where the files go:
    /// then an upload takes its name by renaming, and is copied otherwise. Several processes may share it, if the file system has locks.
    /// </summary>
    public string Folder { get; set; } = string.Empty;

    /// <summary>
    /// The maximum length of one upload, in bytes; <see langword="null"/>, the default, sets no limit. A longer one gets 413. The server's
    /// own limit (Kestrel's MaxRequestBodySize) does not hold for the requests of this endpoint.
    /// </summary>
    public long? MaxLength { get; set; }

    /// <summary>
    /// The maximum number of bytes of all uploads together that are not finished, by the lengths that they have announced, or by what has
    /// come of those that have announced none; <see langword="null"/>, the default, sets no limit. An upload beyond it gets 507, and
    /// clients try again later. Each process counts its own uploads at once, and those of others when it sweeps the folder: at the
    /// start, every hour, and when it has refused one.
    /// </summary>
    public long? MaxTotalLength { get; set; }

    /// <summary>
    /// The maximum number of uploads that are not finished; one beyond it gets 507. <see langword="null"/>, the default, means as many as
    /// fit into <see cref="MaxTotalLength"/> with 4,096 bytes each, and 16 more; at most, and without that limit, 10,000.
    /// </summary>
    public int? MaxUploads { get; set; }

    /// <summary>
    /// The same as <see cref="MaxUploads"/> for those of one <see cref="Owner"/>, by <see cref="MaxTotalLengthPerOwner"/>.
    /// </summary>
    public int? MaxUploadsPerOwner { get; set; }

    /// <summary>
    /// The same as <see cref="MaxTotalLength"/> for the uploads of one <see cref="Owner"/>; <see langword="null"/>, the default, sets no
    /// limit.
    /// </summary>
    public long? MaxTotalLengthPerOwner { get; set; }

    /// <summary>
    /// The maximum length of the header Upload-Metadata, in characters; 4,096 by default. A longer one gets 431.
    /// </summary>
    public int MaxMetadataLength { get; set; } = 4096;

    /// <summary>
    /// Returns whose request it is, such as the name of the user, or <see langword="null"/> if it is nobody's, who gets 403. An upload
    /// belongs to who has made it: for others it does not exist (404), and its parts cannot be concatenated. <see langword="null"/>, the
    /// default: whoever knows the URL of an upload can go on with it.
    /// </summary>
    public Func<HttpContext, string?>? Owner { get; set; }

    /// <summary>
    /// Returns the folder of a request, in the place of <see cref="Folder"/>, where the pattern has parameters; <see langword="null"/>, its
    /// result, means 404. Nothing of it may come from the client unchecked. Limits hold for each folder by itself, and only folders that a
    /// request was for since the start are swept for expired uploads. <see langword="null"/> by default.
    /// </summary>
    public Func<HttpContext, string?>? FolderOf { get; set; }

    /// <summary>
    /// Whether a folder is taken that others may write to; <see langword="false"/> by default, because who may could plant uploads that are
    /// then finished in your name. Not checked on Windows; on macOS the owner is not.
    /// </summary>
    public bool AllowSharedFolder { get; set; }

    /// <summary>
    /// How long the next bytes of a body are waited for; a minute by default, <see cref="Timeout.InfiniteTimeSpan"/> waits for ever, at
    /// most a day. Then the request ends with 408, and what has come is kept. It is what ends a connection that died without a close; a new
    /// request for the upload does not wait for it, but takes over at once.
    /// </summary>
    public TimeSpan IdleTimeout { get; set; } = TimeSpan.FromMinutes(1);

    /// <summary>
    /// Whether the header X-HTTP-Method-Override of a POST is obeyed, as tus requires; <see langword="true"/> by default. Disable it if a
    /// proxy in front of the application judges requests by their method.
    /// </summary>
    public bool AllowMethodOverride { get; set; } = true;

    /// <summary>
    /// Whether the bytes up to an offset are on the device when a client gets the offset, and content and name of a finished upload when
    /// it is acknowledged; <see langword="false"/> by default. Otherwise a power failure may lose bytes that a client does not send again.
    /// A process that is killed loses none of them in either case.
    /// </summary>
    public bool Durable { get; set; }

    /// <summary>
    /// How long an upload is kept after its last request; a day by default, 1 s to 365 days. What nobody has finished by then is removed,
    /// and so is the memory of what was finished.
    /// </summary>
    public TimeSpan Expiration { get; set; } = TimeSpan.FromDays(1);

    /// <summary>
    /// The hash of the whole upload to compute, for <see cref="UploadInspection.Hash"/> and <see cref="CompletedUpload.Hash"/>;
    /// <see langword="null"/>, the default, computes none. The upload is read for it when it is complete.
    /// </summary>
    public HashAlgorithmName? Hash { get; set; }

    /// <summary>
    /// Called for each request that means an upload, also for the creation, before anything is done; <see langword="null"/> by default.
    /// <see cref="ResumableUploadRequest.Operation"/> is what is wanted. It may refuse that (<see
    /// cref="ResumableUploadRequest.Refuse"/>, or a <see cref="BadHttpRequestException"/>).
    /// </summary>
    public Func<ResumableUploadRequest, CancellationToken, ValueTask>? OnRequestAsync { get; set; }

    /// <summary>
    /// Checks the whole upload, as <see cref="SaveBodyOptions.InspectAsync"/> does; <see langword="null"/> by default. If it returns
    /// <see langword="false"/> or throws <see cref="InvalidDataException"/>, the upload is removed, with status 422. A
    /// <see cref="BadHttpRequestException"/> that it throws sets another status. Everything else that it throws
    /// is logged, the status is 503, and the upload stays: the client can finish it later.
    /// </summary>
    public Func<UploadInspection, CancellationToken, ValueTask<bool>>? InspectAsync { get; set; }

    /// <summary>
    /// Called with each whole upload, before the client gets the response; <see langword="null"/>, the default, lets it stay in
    /// <see cref="Folder"/>, under its <see cref="ResumableUpload.Id"/>. What it does not save (<see cref="CompletedUpload.SaveAsync"/>) is
    /// removed after it. If it throws, or the process is killed, it is called again when the client goes on. A
    /// <see cref="BadHttpRequestException"/> with a status of 400 to 499 refuses the upload, which is removed. Of
    /// partial uploads (concatenation) only the whole one that they become is given to it.
    /// </summary>
    public Func<CompletedUpload, CancellationToken, ValueTask>? OnCompletedAsync { get; set; }

    /// <exception cref="ArgumentException"><see cref="Folder"/> is empty.</exception>
    /// <exception cref="ArgumentOutOfRangeException">A value is out of its range.</exception>
    internal void Validate()
    {
        if (FolderOf is null)
        {
            ArgumentException.ThrowIfNullOrEmpty(Folder);
        }

        ArgumentOutOfRangeException.ThrowIfLessThan(MaxUploads ?? 1, 1, nameof(MaxUploads));
        ArgumentOutOfRangeException.ThrowIfLessThan(MaxUploadsPerOwner ?? 1, 1, nameof(MaxUploadsPerOwner));
        ArgumentOutOfRangeException.ThrowIfNegative(MaxTotalLengthPerOwner ?? 0, nameof(MaxTotalLengthPerOwner));
        ArgumentOutOfRangeException.ThrowIfNegative(MaxMetadataLength, nameof(MaxMetadataLength));
        if (IdleTimeout != Timeout.InfiniteTimeSpan)
        {
            ArgumentOutOfRangeException.ThrowIfLessThanOrEqual(IdleTimeout, TimeSpan.Zero, nameof(IdleTimeout));
            ArgumentOutOfRangeException.ThrowIfGreaterThan(IdleTimeout, s_longestIdleTimeout, nameof(IdleTimeout));
        }

        ArgumentOutOfRangeException.ThrowIfNegative(MaxLength ?? 0, nameof(MaxLength));
        ArgumentOutOfRangeException.ThrowIfNegative(MaxTotalLength ?? 0, nameof(MaxTotalLength));
        ArgumentOutOfRangeException.ThrowIfLessThan(Expiration, TimeSpan.FromSeconds(1), nameof(Expiration));
        ArgumentOutOfRangeException.ThrowIfGreaterThan(Expiration, s_longestExpiration, nameof(Expiration));
    }
}
