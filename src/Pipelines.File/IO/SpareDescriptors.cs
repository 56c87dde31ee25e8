namespace Pipelines.File.IO;

/// <summary>A cache that keeps files open that nobody uses at the moment.</summary>
internal interface ISpareDescriptors
{
    /// <summary>Stops keeping them, and closes those that are unused. Returns <see langword="false"/> if none was kept.</summary>
    bool TryCloseUnused();
}

/// <summary>
/// The descriptors that are kept open without need. They are closed when the process has no other left (EMFILE and ENFILE of open(2)).
/// </summary>
internal static class SpareDescriptors
{
    /// <summary>A cache may keep this part of the descriptors that are free when it is created: a quarter.</summary>
    private const int Share = 4;

    private static readonly ConditionalWeakTable<ISpareDescriptors, object?> s_keepers = [];

    /// <summary>
    /// Gets how many descriptors a cache may keep, and from which number on it keeps none (Linux gives away the lowest free number first).
    /// </summary>
    /// <param name="mostKept">A quarter of the descriptors that the process may still open.</param>
    /// <param name="firstScarce">The first number of the last quarter of all.</param>
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
    /// Closes all descriptors that nobody needs. Returns <see langword="false"/> if there were none, so that trying again is useless.
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
