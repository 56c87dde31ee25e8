using System.Diagnostics;

namespace FilePipelinesTests;

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
        for (int attempt = 1; Run($"mkfs.{fileSystem}", [.. options, target]) is { } error; attempt++)
        {
            if (attempt == MaxAttempts)
            {
                throw new IOException($"mkfs.{fileSystem} {target}: {error}");
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
            _ = Run("umount", ["--lazy", mount[1]]);
            if (mount[0].StartsWith("/dev/loop", StringComparison.Ordinal))
            {
                _ = Run("losetup", ["--detach", mount[0]]);
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
    private static string? Run(string program, string[] arguments)
    {
        ProcessStartInfo start = new(program, arguments) { RedirectStandardOutput = true, RedirectStandardError = true };
        start.Environment["PATH"] += ":/usr/sbin:/sbin";

        // What the tests of XFS itself set, so that mkfs.xfs makes one of less than 300 MiB: a log of 64 MiB takes long to recover.
        start.Environment["TEST_DIR"] = start.Environment["TEST_DEV"] = start.Environment["QA_CHECK_FS"] = "1";
        using Process process = Process.Start(start)!;
        process.OutputDataReceived += static (_, _) => { };
        process.BeginOutputReadLine();
        string error = process.StandardError.ReadToEnd();
        process.WaitForExit();
        return process.ExitCode == 0 ? null : error;
    }
}
