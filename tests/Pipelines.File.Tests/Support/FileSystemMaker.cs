namespace FilePipelines.Tests;

/// <summary>Makes file systems.</summary>
internal static class FileSystemMaker
{
    private const int MaxAttempts = 5;

    /// <summary>Makes an empty one.</summary>
    /// <param name="fileSystem">ext4, xfs or btrfs.</param>
    /// <param name="target">A file, or a device.</param>
    /// <param name="options">Options of its mkfs.</param>
    public static void Make(string fileSystem, string target, string[] options)
    {
        // mkfs.btrfs(8) looks for the file behind each loop device that is mounted. It fails over one that another test detaches meanwhile,
        // and over one whose file is on a dead file system. It cannot be shown other mounts: a mount namespace of its own would keep the
        // disks of other tests mounted.
        for (int attempt = 1; TryRun($"mkfs.{fileSystem}", [.. options, target]) is { } error; attempt++)
        {
            if (attempt == MaxAttempts)
            {
                throw new IOException(error);
            }

            UnmountRemains();
        }
    }

    /// <summary>Unmounts what killed runs have left: their FUSE is dead, and so are the disks whose files are there.</summary>
    private static void UnmountRemains()
    {
        string[][] mounts = [.. File.ReadLines("/proc/self/mounts").Select(static line => line.Split(' '))];
        foreach (string[] fuse in mounts.Where(static mount => mount[2] == "fuse" && mount[1].Contains(TempFolder.Prefix)))
        {
            if (IsDead(fuse[1]))
            {
                UnmountBelow(Path.GetDirectoryName(fuse[1])! + "/", mounts);
            }
        }
    }

    private static void UnmountBelow(string folder, string[][] mounts)
    {
        foreach (string[] mount in mounts.Where(mount => mount[1].StartsWith(folder, StringComparison.Ordinal)).Reverse())
        {
            _ = TryRun("umount", "--lazy", mount[1]);
            if (mount[0].StartsWith("/dev/loop", StringComparison.Ordinal))
            {
                _ = TryRun("losetup", "--detach", mount[0]);
            }
        }
    }

    private static bool IsDead(string folder)
    {
        try
        {
            _ = Directory.GetFileSystemEntries(folder);
            return false;
        }
        catch (IOException)
        {
            return true;
        }
    }

    /// <summary>Returns the error.</summary>
    private static string? TryRun(string program, params string[] arguments)
    {
        try
        {
            _ = SystemTool.Run(program, arguments);
            return null;
        }
        catch (IOException e)
        {
            return e.Message;
        }
    }
}
