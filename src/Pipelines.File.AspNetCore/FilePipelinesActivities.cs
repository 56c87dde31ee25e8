using System.Diagnostics;

namespace Pipelines.File.AspNetCore;

/// <summary>The activities of uploads and caches, which cost nothing as long as nobody listens.</summary>
internal static class FilePipelinesActivities
{
    private static readonly ActivitySource s_source = new(
        FilePipelinesMeter.ActivitySourceName, typeof(FilePipelinesActivities).Assembly.GetName().Version?.ToString(3));

    internal static Activity? Begin(string name) => s_source.StartActivity(name);

    /// <summary>Marks an activity as failed, by OpenTelemetry's convention.</summary>
    internal static void Fail(this Activity? activity, string errorType)
        => activity?.SetTag("error.type", errorType).SetStatus(ActivityStatusCode.Error);
}
