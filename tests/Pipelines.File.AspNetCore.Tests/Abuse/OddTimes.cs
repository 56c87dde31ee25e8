namespace FilePipelines.AspNetCore.Tests.Abuse;

/// <summary>Files whose times .NET cannot hold: touch(1) gives them to such as are on tmpfs.</summary>
internal static class OddTimes
{
    private const string Memory = "/dev/shm";

    /// <summary>A new folder on tmpfs. The test is skipped where there is none.</summary>
    internal static string NewFolder()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Directory.Exists(Memory), "Only tmpfs of Linux has such times.");
        string folder = Path.Combine(Memory, "odd-times-" + Guid.NewGuid().ToString("N"));
        Directory.CreateDirectory(folder, UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute);
        return folder;
    }

    /// <summary>Gives a file a time, as touch(1) reads it.</summary>
    internal static void Set(string path, string time)
    {
        using Process touch = Process.Start("touch", ["-d", time, path]);
        touch.WaitForExit();
        Assert.Equal(0, touch.ExitCode);
    }
}
