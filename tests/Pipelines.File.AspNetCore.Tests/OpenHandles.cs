namespace FileSendingTests;

/// <summary>The handles that this process has on a file, where the system tells.</summary>
public static class OpenHandles
{
    public static int Of(string path)
    {
        int count = 0;
        foreach (string descriptor in Directory.EnumerateFileSystemEntries("/proc/self/fd"))
        {
            try
            {
                string? target = new FileInfo(descriptor).LinkTarget;
                count += target == path || target == path + " (deleted)" ? 1 : 0;
            }
            catch (IOException)
            {
                // Closed since it was listed.
            }
        }

        return count;
    }

    /// <summary>Waits until nobody has the file open.</summary>
    public static async Task NoneAsync(string path)
    {
        for (int i = 0; i < 500 && Of(path) > 0; i++)
        {
            await Task.Delay(20, TestContext.Current.CancellationToken);
        }

        Assert.Equal(0, Of(path));
    }
}
