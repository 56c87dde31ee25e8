namespace Pipelines.File.IO;

/// <summary>Whoever keeps files open that nobody uses at the moment.</summary>
internal interface ISpareDescriptors
{
    /// <summary>Closes them. <see langword="false"/>: there was none.</summary>
    bool TryCloseUnused();
}

/// <summary>
/// The descriptors that the process could do without: they are given up when it has no other left (EMFILE and ENFILE of open(2)).
/// </summary>
internal static class SpareDescriptors
{
    /// <summary>Of the descriptors that are free when a cache is made, it takes this part at most.</summary>
    private const int Share = 4;

    private static readonly ConditionalWeakTable<ISpareDescriptors, object?> s_keepers = [];

    /// <summary>
    /// How many descriptors may be kept of those that are free now, and from which number on none is (Linux: the lowest free number is
    /// given away first).
    /// </summary>
    /// <param name="mostKept">A quarter of what the process may still open.</param>
    /// <param name="firstScarce">Three quarters of all numbers are below it.</param>
    internal static unsafe void GetLimits(out int mostKept, out int firstScarce)
    {
        mostKept = firstScarce = int.MaxValue;
        ulong* limits = stackalloc ulong[2];
        if (!OperatingSystem.IsLinux() || Libc.GetResourceLimit(Libc.RLIMIT_NOFILE, limits) != 0 || limits[0] > int.MaxValue)
        {
            return;
        }

        int all = (int)limits[0];
        firstScarce = all - (all / Share);
        mostKept = Math.Max(0, all - CountOpen()) / Share;
    }

    internal static void Add(ISpareDescriptors keeper) => s_keepers.Add(keeper, null);

    internal static void Remove(ISpareDescriptors keeper) => s_keepers.Remove(keeper);

    /// <summary>Whether opening failed because the process (EMFILE) or the system (ENFILE) has no descriptor left.</summary>
    internal static bool AreShort(IOException error) => !OperatingSystem.IsWindows() && error.HResult is Libc.EMFILE or Libc.ENFILE;

    /// <summary>
    /// Has everything closed that is open for nobody. <see langword="false"/>: there was nothing, and trying again is of no use.
    /// </summary>
    internal static bool TryRelease()
    {
        bool isAnyReleased = false;
        foreach (KeyValuePair<ISpareDescriptors, object?> keeper in s_keepers)
        {
            isAnyReleased |= keeper.Key.TryCloseUnused();
        }

        return isAnyReleased;
    }

    private static int CountOpen()
    {
        try
        {
            return Directory.EnumerateFileSystemEntries("/proc/self/fd").Count();
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return 0;
        }
    }
}
