using System.Diagnostics;

namespace FilePipelinesTests;

/// <summary>Runs the child program, by itself or under a shell that takes something from it.</summary>
internal static class ChildProcess
{
    /// <summary>The command line of the child, for a shell.</summary>
    public static string Command(params string[] arguments)
    {
        // Beside a runtime of its own it is a program (.ci/net11), which dotnet does not start.
        string program = Path.Combine(AppContext.BaseDirectory, "Pipelines.File.Child");
        bool isSelfContained = File.Exists(Path.Combine(AppContext.BaseDirectory, "libhostfxr.so"));
        string[] start = isSelfContained ? [program] : ["dotnet", program + ".dll"];
        return string.Join(' ', start.Concat(arguments).Select(a => $"'{a}'"));
    }

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
