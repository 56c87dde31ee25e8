using System.Diagnostics;

namespace FilePipelines.Tests;

/// <summary>Runs programs of the system's administrator, such as losetup(8).</summary>
internal static class SystemTool
{
    private static readonly string[] s_folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

    public static bool Exists(string program) => Array.Exists(s_folders, folder => File.Exists(Path.Combine(folder, program)));

    /// <summary>Returns what it writes.</summary>
    /// <exception cref="IOException">It has failed, with this text.</exception>
    public static string Run(string program, params string[] arguments)
    {
        ProcessStartInfo start = new(program, arguments) { RedirectStandardOutput = true, RedirectStandardError = true };
        start.Environment["PATH"] = string.Join(':', s_folders);

        // What the tests of XFS itself set, so that mkfs.xfs makes one of less than 300 MiB: a log of 64 MiB takes long to recover.
        start.Environment["TEST_DIR"] = start.Environment["TEST_DEV"] = start.Environment["QA_CHECK_FS"] = "1";
        using Process process = Process.Start(start)!;
        Task<string> error = process.StandardError.ReadToEndAsync();
        string output = process.StandardOutput.ReadToEnd();
        process.WaitForExit();
        return process.ExitCode == 0 ? output
            : throw new IOException($"{program} {string.Join(' ', arguments)}: {process.ExitCode}, {error.Result}");
    }
}
