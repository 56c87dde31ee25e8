using System.Globalization;
using System.Runtime.CompilerServices;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The files that are kept open without need. They are closed when the process has no other descriptor left (EMFILE and ENFILE of open(2)).
/// </summary>
internal static class SpareDescriptors
{
    /// <summary>A cache may keep this part of the descriptors that are free when it is created: a quarter.</summary>
    private const int Share = 4;

    // errno(3), the same on Linux and macOS.
    private const int ENFILE = 23;
    private const int EMFILE = 24;

    private static readonly ConditionalWeakTable<OpenFiles, object?> s_keepers = [];

    /// <summary>
    /// Gets how many descriptors a cache may keep, and from which number on it keeps none (Linux gives away the lowest free number first).
    /// By proc_pid_limits(5).
    /// </summary>
    /// <param name="mostKept">A quarter of the descriptors that the process may still open.</param>
    /// <param name="firstScarce">The first number of the last quarter of all.</param>
    internal static void GetLimits(out int mostKept, out int firstScarce)
    {
        mostKept = firstScarce = int.MaxValue;
        const string Limit = "Max open files ";
        try
        {
            string? line = OperatingSystem.IsLinux()
                ? System.IO.File.ReadLines("/proc/self/limits")
                    .FirstOrDefault(static line => line.StartsWith(Limit, StringComparison.Ordinal))
                : null;
            if (int.TryParse(line?[Limit.Length..].TrimStart().Split(' ')[0], NumberStyles.None, CultureInfo.InvariantCulture, out int all))
            {
                firstScarce = all - (all / Share);
                mostKept = Math.Max(0, all - Directory.EnumerateFileSystemEntries("/proc/self/fd").Count()) / Share;
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // A sandbox without /proc: the limit is unknown.
        }
    }

    internal static void Add(OpenFiles keeper) => s_keepers.Add(keeper, null);

    internal static void Remove(OpenFiles keeper) => s_keepers.Remove(keeper);

    /// <summary>Opens a file; if no descriptor is left, closes all that are kept without need, and tries again.</summary>
    internal static T Open<T>(string path, Func<string, T> open)
    {
        try
        {
            return open(path);
        }
        catch (IOException e) when (!OperatingSystem.IsWindows() && e.HResult is EMFILE or ENFILE && TryRelease())
        {
            return open(path);
        }
    }

    /// <summary>
    /// Closes all descriptors that nobody needs. Returns <see langword="false"/> if there were none, so that trying again is useless.
    /// </summary>
    private static bool TryRelease()
    {
        bool isAnyReleased = false;
        foreach (KeyValuePair<OpenFiles, object?> keeper in s_keepers)
        {
            isAnyReleased |= keeper.Key.TryCloseUnused();
        }

        return isAnyReleased;
    }
}
