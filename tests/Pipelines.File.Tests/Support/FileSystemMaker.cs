using System.Diagnostics;

namespace FilePipelinesTests;

/// <summary>Makes file systems.</summary>
internal static class FileSystemMaker
{
    // In a mount namespace that shows no mounts: mkfs.btrfs(8) looks for the file behind each loop device that is mounted, and fails over
    // one that another test detaches meanwhile, or that a killed run has left on a dead file system.
    private const string WithoutMounts = "mount --bind /dev/null /proc/$$/mounts && exec \"$0\" \"$@\"";

    /// <summary>Makes an empty one.</summary>
    /// <param name="fileSystem">ext4, xfs or btrfs.</param>
    /// <param name="target">A file, or a device.</param>
    /// <param name="options">Options of its mkfs.</param>
    public static void Make(string fileSystem, string target, string[] options)
    {
        string program = $"mkfs.{fileSystem}";
        ProcessStartInfo start = new("unshare", ["--mount", "sh", "-c", WithoutMounts, program, .. options, target])
        {
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        start.Environment["PATH"] += ":/usr/sbin:/sbin";

        // What the tests of XFS itself set, so that mkfs.xfs makes one of less than 300 MiB: a log of 64 MiB takes long to recover.
        start.Environment["TEST_DIR"] = start.Environment["TEST_DEV"] = start.Environment["QA_CHECK_FS"] = "1";
        using Process process = Process.Start(start)!;
        process.OutputDataReceived += static (_, _) => { };
        process.BeginOutputReadLine();
        string error = process.StandardError.ReadToEnd();
        process.WaitForExit();
        if (process.ExitCode != 0)
        {
            throw new IOException($"{program} {target}: {process.ExitCode}, {error}");
        }
    }
}
