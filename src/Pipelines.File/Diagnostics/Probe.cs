namespace Pipelines.File.Diagnostics;

/// <summary>What tests see and change of branches that ordinary runs hardly reach.</summary>
internal static class Probe
{
    /// <summary>The rare branches that were reached, in debug builds. A long run compares them with those that the source names.</summary>
    internal static readonly System.Collections.Concurrent.ConcurrentDictionary<string, int> Reached = new();

    // How many more allocations of the current thread succeed, plus 1; 0: all.
    [ThreadStatic]
    private static int s_allocationsLeft;

    /// <summary>Notes that a rare branch was reached. The name occurs once in the source.</summary>
    [Conditional("DEBUG")]
    internal static void Rare(string branch) => Reached.AddOrUpdate(branch, 1, static (_, count) => count + 1);

    /// <summary>
    /// For tests: the allocation with this number, from 1 on, of those that <see cref="Allocating"/> marks on this thread fails.
    /// </summary>
    internal static void FailAllocation(int number) => s_allocationsLeft = number;

    /// <summary>
    /// Called before an allocation after which a state would be wrong that was changed before it. Not on hot paths.
    /// </summary>
    internal static void Allocating()
    {
        if (s_allocationsLeft > 0 && --s_allocationsLeft == 0)
        {
            throw new InsufficientMemoryException();
        }
    }
}
