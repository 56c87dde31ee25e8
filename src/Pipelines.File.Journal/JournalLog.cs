using Microsoft.Extensions.Logging;

namespace Pipelines.File;

/// <summary>What a journal logs.</summary>
internal static partial class JournalLog
{
    [LoggerMessage(1, LogLevel.Information,
        "Journal {Name} is open: its first record is {First}, the next one {Next}. {CutBytes} bytes of a torn end were cut off.")]
    internal static partial void Opened(ILogger logger, string name, long first, long next, long cutBytes);

    [LoggerMessage(2, LogLevel.Information, "Journal {Name} is closed. The next record is {Next}.")]
    internal static partial void Closed(ILogger logger, string name, long next);

    [LoggerMessage(3, LogLevel.Error, "Journal {Name} has failed, and takes no more records until it is opened again.")]
    internal static partial void Failed(ILogger logger, Exception error, string name);

    [LoggerMessage(4, LogLevel.Information, "Journal {Name} goes on after an error. The next record is {Next}.")]
    internal static partial void Reopened(ILogger logger, string name, long next);

    [LoggerMessage(5, LogLevel.Warning,
        "Old segments of journal {Name} cannot be removed. It is tried again when the next segment begins.")]
    internal static partial void RetentionFailed(ILogger logger, Exception error, string name);

    [LoggerMessage(6, LogLevel.Debug, "Journal {Name} has begun a segment with record {First}. It has {Segments} segments.")]
    internal static partial void SegmentBegun(ILogger logger, string name, long first, int segments);

    [LoggerMessage(7, LogLevel.Warning,
        "The segment after {Path} is missing, as in a copy of a journal that was written. It goes on with record {Next} in a new epoch.")]
    internal static partial void NewestIsMissing(ILogger logger, string path, long next);
}
