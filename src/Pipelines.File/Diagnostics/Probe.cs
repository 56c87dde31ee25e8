namespace Pipelines.File.Diagnostics;

/// <summary>What tests see and change of branches that ordinary runs hardly reach.</summary>
internal static class Probe
{
    private static readonly System.Collections.Concurrent.ConcurrentDictionary<string, int> s_reached = new();

    // Whether the names are written at the end of the process.
    private static int s_isReported;

    // How many more allocations of the current thread succeed, plus 1; 0: all.
    [ThreadStatic]
    private static int s_allocationsLeft;

    // How many fail then, one after the other.
    [ThreadStatic]
    private static int s_allocationsToFail;

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

    /// <summary>
    /// For tests: the allocation with this number, from 1 on, of those that <see cref="Allocating"/> marks on this thread fails, and the
    /// next ones fail, too, <paramref name="count"/> in all.
    /// </summary>
    internal static void FailAllocation(int number, int count = 1) => (s_allocationsLeft, s_allocationsToFail) = (number, count);

    /// <summary>
    /// Called before an allocation after which a state would be wrong that was changed before it. Not on hot paths.
    /// </summary>
    internal static void Allocating()
    {
        if (s_allocationsLeft > 0 && --s_allocationsLeft == 0)
        {
            s_allocationsLeft = --s_allocationsToFail > 0 ? 1 : 0;
            throw new InsufficientMemoryException();
        }
    }
}
