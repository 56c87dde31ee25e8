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
}
