using Microsoft.Extensions.Logging;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// Every message that the package logs. In one class: the generator of logging writes several classes in an order that is not always the
/// same, and two builds of a commit would differ.
/// </summary>
internal static partial class ServingLog
{
    [LoggerMessage(1, LogLevel.Error, "The connection was aborted in the middle of sending '{Path}'.", EventName = "SendFailed")]
    internal static partial void LogSendFailed(this ILogger logger, string? path, Exception exception);

    [LoggerMessage(2, LogLevel.Error, "The inspection of an upload has failed, and the upload was refused with status 503.",
        EventName = "InspectionFailed")]
    internal static partial void LogInspectionFailed(this ILogger logger, Exception exception);

    [LoggerMessage(3, LogLevel.Warning, "An upload came through request decompression. An upload that was cut off would be saved as if it "
        + "were whole: set the runtime's switch {Switch} to true.", EventName = "LenientDecompression")]
    internal static partial void LogLenientDecompression(this ILogger logger, string @switch);

    [LoggerMessage(4, LogLevel.Information, "An upload was refused with status {Status}: {Kind}.", EventName = "UploadRefused")]
    internal static partial void LogUploadRefused(this ILogger logger, int status, string kind);

    [LoggerMessage(10, LogLevel.Information, "The upload {Id} has expired with {Offset} bytes, and was removed.",
        EventName = "UploadExpired")]
    internal static partial void LogUploadExpired(this ILogger logger, string id, long offset);

    [LoggerMessage(11, LogLevel.Warning, "The state of the upload {Id} is damaged, so nobody can go on with it. It is removed when it is "
        + "as old as uploads become.", EventName = "UploadBroken")]
    internal static partial void LogUploadBroken(this ILogger logger, string id, Exception exception);

    [LoggerMessage(12, LogLevel.Warning, "The look for expired uploads could not do its work at '{Path}', and tries again later.",
        EventName = "UploadSweepFailed")]
    internal static partial void LogUploadSweepFailed(this ILogger logger, string path, Exception exception);

    [LoggerMessage(20, LogLevel.Warning, "The cache entry '{Path}' is damaged, and was removed.", EventName = "EntryDamaged")]
    internal static partial void LogEntryDamaged(this ILogger logger, string path);

    [LoggerMessage(21, LogLevel.Warning, "The look through the cache '{Folder}' could not do its work, and tries again later.",
        EventName = "CacheSweepFailed")]
    internal static partial void LogCacheSweepFailed(this ILogger logger, string folder, Exception exception);

    [LoggerMessage(22, LogLevel.Warning, "An entry with a key of {Length} characters and {Tags} tags is too long for the cache, and is not "
        + "stored.", EventName = "EntryNotStored")]
    internal static partial void LogEntryNotStored(this ILogger logger, int length, int tags);

    [LoggerMessage(13, LogLevel.Information, "A new request goes on with the upload {Id}, and the one that waited for its bytes ends.",
        EventName = "UploadTakenOver")]
    internal static partial void LogUploadTakenOver(this ILogger logger, string id);
}
