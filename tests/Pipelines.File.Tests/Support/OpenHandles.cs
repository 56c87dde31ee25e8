namespace FilePipelines.Tests;

/// <summary>The handles that this process has on a file, where the system tells.</summary>
public static class OpenHandles
{
    public static int Of(string path) => Count(target => target == path || target == path + " (deleted)");

    public static int Below(string folder) => Count(target => target.StartsWith(folder, StringComparison.Ordinal));

    /// <summary>inotify(7) instances.</summary>
    public static int Instances() => Count(static target => target == "anon_inode:inotify");

    /// <summary>What these instances watch.</summary>
    public static int Watches()
        => Directory.EnumerateFileSystemEntries("/proc/self/fd")
            .Where(static descriptor => new FileInfo(descriptor).LinkTarget == "anon_inode:inotify")
            .Sum(static descriptor => File.ReadLines(descriptor.Replace("/fd/", "/fdinfo/", StringComparison.Ordinal))
                .Count(static line => line.StartsWith("inotify ", StringComparison.Ordinal)));

    /// <summary>Waits until nobody has the file open.</summary>
    public static async Task NoneAsync(string path)
    {
        for (int i = 0; i < 500 && Of(path) > 0; i++)
        {
            await Task.Delay(20, TestContext.Current.CancellationToken);
        }

        Assert.Equal(0, Of(path));
    }

    private static int Count(Func<string, bool> isMeant)
    {
        int count = 0;
        foreach (string descriptor in Directory.EnumerateFileSystemEntries("/proc/self/fd"))
        {
            try
            {
                count += new FileInfo(descriptor).LinkTarget is { } target && isMeant(target) ? 1 : 0;
            }
            catch (IOException)
            {
                // Closed since it was listed.
            }
        }

        return count;
    }
}
