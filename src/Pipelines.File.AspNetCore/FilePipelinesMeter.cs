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
    /// A counter, {file}: request bodies, or sections of them, that were not saved, by <c>kind</c>. docs/serving.md lists the kinds.
    /// </summary>
    public const string UploadsBroken = "pipelines.file.uploads.broken";
}
