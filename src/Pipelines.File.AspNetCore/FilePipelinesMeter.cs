namespace Pipelines.File.AspNetCore;

/// <summary>
/// The names of the meter and of its instruments that this package adds, for a <see cref="System.Diagnostics.Metrics.MeterListener"/>, for
/// OpenTelemetry (<c>AddMeter(FilePipelinesMeter.Name)</c>) or for dotnet-counters. The meter is made by the application's
/// <see cref="System.Diagnostics.Metrics.IMeterFactory"/>. The instruments of the library itself have the same meter name; they count for
/// the whole process (docs/running.md).
/// </summary>
public static class FilePipelinesMeter
{
    /// <summary>The name of the meter.</summary>
    public const string Name = "Pipelines.File";

    /// <summary>A counter, {file}: files, or ranges of them, that were sent whole.</summary>
    public const string ResponsesSent = "pipelines.file.responses.sent";

    /// <summary>
    /// A counter, {file}: files, or ranges of them, whose sending ended before their end, by <c>kind</c>: <c>abandoned</c> (by the client,
    /// or canceled), <c>truncated</c> (the file became shorter), <c>failed</c>.
    /// </summary>
    public const string ResponsesBroken = "pipelines.file.responses.broken";

    /// <summary>A counter, {file}: files, or ranges of them, that were left to the server's own SendFileAsync.</summary>
    public const string ResponsesLeft = "pipelines.file.responses.left";

    /// <summary>A counter, {file}: files that were opened to be sent; the others were open.</summary>
    public const string ResponsesOpened = "pipelines.file.responses.opened";

    /// <summary>An up-down counter, {file}: files that are kept open for the next request.</summary>
    public const string ResponsesKept = "pipelines.file.responses.kept";

    /// <summary>A counter, {file}: request bodies, or sections of them, that were saved whole.</summary>
    public const string UploadsSaved = "pipelines.file.uploads.saved";

    /// <summary>
    /// A counter, {file}: request bodies, or sections of them, that were not saved, by <c>kind</c>. docs/events.md lists the kinds.
    /// </summary>
    public const string UploadsBroken = "pipelines.file.uploads.broken";

    /// <summary>
    /// A histogram, s: how long an upload took, from its request to its name, or to its end; of a resumable one each request counts. With
    /// <c>error.type</c>, which is the kind of <see cref="UploadsBroken"/>, if it was not saved.
    /// </summary>
    public const string UploadDuration = "pipelines.file.uploads.duration";

    /// <summary>A histogram, By: how many bytes of it came, with the same <c>error.type</c>.</summary>
    public const string UploadSize = "pipelines.file.uploads.size";

    /// <summary>The name of the meter of the caches.</summary>
    public const string CachingName = "Pipelines.File.Caching";

    /// <summary>A counter, {entry}: entries that were found and given out.</summary>
    public const string CacheHits = "pipelines.file.cache.hits";

    /// <summary>A counter, {entry}: entries that were asked for and not there.</summary>
    public const string CacheMisses = "pipelines.file.cache.misses";

    /// <summary>A counter, {entry}: entries that were removed because they had expired or there were too many bytes.</summary>
    public const string CacheEvictions = "pipelines.file.cache.evictions";

    /// <summary>A counter, {entry}: files that were no whole entry and were removed; each is a miss, too.</summary>
    public const string CacheDamaged = "pipelines.file.cache.damaged";

    /// <summary>An up-down counter, By: bytes on disk at the last sweep of the folder.</summary>
    public const string CacheBytes = "pipelines.file.cache.bytes";

    /// <summary>
    /// The name of the source of activities: <c>pipelines.file.upload</c> for each upload, or request of a resumable one, and
    /// <c>pipelines.file.cache.get</c> and <c>.set</c>.
    /// </summary>
    public const string ActivitySourceName = "Pipelines.File.AspNetCore";
}
