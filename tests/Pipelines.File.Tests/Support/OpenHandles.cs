namespace FilePipelines.Tests;

/// <summary>The handles that this process has on a file, where the system tells.</summary>
public static class OpenHandles
{
    public static int Of(string path) => Count(target => target == path || target == path + " (deleted)");

    public static int Below(string folder) => Count(target => target.StartsWith(folder, StringComparison.Ordinal));

    /// <summary>inotify(7) instances.</summary>
    public static int Instances() => Count(IsInstance);

    /// <summary>What these instances watch.</summary>
    public static int Watches()
        => Count(IsInstance, static descriptor => File.ReadLines(descriptor.Replace("/fd/", "/fdinfo/", StringComparison.Ordinal))
            .Count(static line => line.StartsWith("inotify ", StringComparison.Ordinal)));

    /// <summary>Waits until nobody has the file open.</summary>
    public static Task NoneAsync(string path) => Eventually.TrueAsync(() => Of(path) == 0);

    private static bool IsInstance(string target) => target == "anon_inode:inotify";

    private static int Count(Func<string, bool> isMeant, Func<string, int>? each = null)
    {
        int count = 0;
        foreach (string descriptor in Directory.EnumerateFileSystemEntries("/proc/self/fd"))
        {
            try
            {
                count += new FileInfo(descriptor).LinkTarget is not { } target || !isMeant(target) ? 0 : each?.Invoke(descriptor) ?? 1;
            }
            catch (IOException)
            {
                // Closed since it was listed.
            }
        }

        return count;
    }
}
