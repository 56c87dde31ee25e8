using System.Diagnostics;

namespace FilePipelines.Tests;

/// <summary>Runs the child program, by itself or under a shell that takes something from it.</summary>
internal static class ChildProcess
{
    /// <summary>strace(1), which follows all threads and stops them only at calls that it is asked for. Its options follow.</summary>
    public const string Strace = "strace -f --seccomp-bpf";

    /// <summary>The command line of the child, for a shell.</summary>
    public static string Command(params string[] arguments)
        => string.Join(' ', arguments.Select(a => $"'{a}'").Prepend(Program(AppContext.BaseDirectory)));

    /// <summary>Whether the tests have a runtime of their own (.ci/musl).</summary>
    public static bool IsSelfContained => File.Exists(Path.Combine(AppContext.BaseDirectory, "libhostfxr.so"));

    /// <summary>What starts the child in that folder. Beside a runtime of its own it is a program, which dotnet does not start.</summary>
    public static string Program(string folder)
        => IsSelfContained ? $"'{Path.Combine(folder, "Pipelines.File.Child")}'"
            : $"dotnet '{Path.Combine(folder, "Pipelines.File.Child.dll")}'";

    public static Process Start(string shellCommand)
        => Process.Start(
            new ProcessStartInfo("/bin/sh", ["-c", shellCommand]) { RedirectStandardOutput = true, RedirectStandardError = true })!;

    public static async Task<(int ExitCode, string Output, string Error)> RunAsync(string shellCommand)
    {
        using Process process = Start(shellCommand);
        Task<string> output = process.StandardOutput.ReadToEndAsync(TestContext.Current.CancellationToken);
        Task<string> error = process.StandardError.ReadToEndAsync(TestContext.Current.CancellationToken);
        await process.WaitForExitAsync(TestContext.Current.CancellationToken);
        return (process.ExitCode, await output, await error);
    }

    /// <summary>Skips the test where it cannot run.</summary>
    public static void SkipUnlessLinux(params string[] programs)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: it uses Linux system calls and a shell.");
        foreach (string program in programs)
        {
            bool isThere = (Environment.GetEnvironmentVariable("PATH") ?? "").Split(':')
                .Any(folder => File.Exists(Path.Combine(folder, program)));
            Assert.SkipUnless(isThere, $"{program} is not installed.");
        }
    }
}
