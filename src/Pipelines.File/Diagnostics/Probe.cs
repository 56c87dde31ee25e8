namespace Pipelines.File.Diagnostics;

/// <summary>What tests see and change of branches that ordinary runs hardly reach.</summary>
internal static class Probe
{
    private static readonly System.Collections.Concurrent.ConcurrentDictionary<string, int> s_reached = new();

    // Whether the names are written at the end of the process.
    private static int s_isReported;

    /// <summary>
    /// Notes that a rare branch was reached. The name occurs once in the source. A debug build adds the names to the file that
    /// PIPELINES_FILE_PROBES names when the process ends; .ci/run fails if one is missing there (CONTRIBUTING.md).
    /// </summary>
    [Conditional("DEBUG")]
    internal static void Rare(string branch)
    {
        if (s_reached.TryAdd(branch, 0) && Interlocked.Exchange(ref s_isReported, 1) == 0
            && Environment.GetEnvironmentVariable("PIPELINES_FILE_PROBES") is { Length: > 0 } path)
        {
            AppDomain.CurrentDomain.ProcessExit += (_, _) => System.IO.File.AppendAllLines(path, s_reached.Keys);
        }
    }
}
