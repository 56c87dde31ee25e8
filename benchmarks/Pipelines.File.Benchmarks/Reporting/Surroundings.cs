using System.Diagnostics;
using System.Globalization;
using System.Runtime;
using System.Runtime.InteropServices;
using FilePipelinesBenchmarks.Interop;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>What the figures depend on: the machine, its system, and the code.</summary>
/// <param name="Machine">Its processor and memory, and what a system call costs.</param>
/// <param name="System">The operating system.</param>
/// <param name="FileSystem">That of the temporary folder.</param>
/// <param name="Runtime">.NET's version.</param>
/// <param name="Commit">Of the repository, and whether there were changes on it.</param>
/// <param name="Sources">The tree of src in that commit: the same tree is the same code, whatever the commit is called.</param>
/// <param name="Date">When it began.</param>
/// <param name="CallMicroseconds">How long the shortest system call takes; <see langword="null"/>: not known.</param>
internal sealed record Surroundings(
    string Machine, string System, string FileSystem, string Runtime, string Commit, string Sources, DateTime Date,
    double? CallMicroseconds)
{
    private const int Calls = 100_000;

    private const string Unknown = "not known";

    internal static Surroundings Look(string repository, string temporaryFolder)
    {
        double? call = MeasureCall();
        return new(
            $"{Processor()}, {Environment.ProcessorCount} logical processors, "
            + $"{GC.GetGCMemoryInfo().TotalAvailableMemoryBytes / (1L << 30)} GiB of memory"
            + (call is null ? string.Empty : string.Create(CultureInfo.InvariantCulture, $", {call:0.0} µs a system call")),
            OperatingSystemName(),
            FileSystemOf(temporaryFolder),
            $"{RuntimeInformation.FrameworkDescription}, {RuntimeInformation.RuntimeIdentifier}, "
            + $"{(GCSettings.IsServerGC ? "server" : "workstation")} collector",
            CommitOf(repository),
            Git(repository, "rev-parse --short=12 HEAD:src") ?? Unknown,
            DateTime.UtcNow,
            call);
    }

    /// <summary>The least of ten means of getppid(2), which only enters the kernel and returns.</summary>
    private static double? MeasureCall()
    {
        if (OperatingSystem.IsWindows())
        {
            return null;
        }

        double least = double.MaxValue;
        for (int i = 0; i < 10; i++)
        {
            long begun = Stopwatch.GetTimestamp();
            for (int call = 0; call < Calls; call++)
            {
                _ = Libc.GetPPid();
            }

            least = Math.Min(least, Stopwatch.GetElapsedTime(begun).TotalMicroseconds / Calls);
        }

        return least;
    }

    private static string Processor()
    {
        const string Information = "/proc/cpuinfo";
        string? model = File.Exists(Information)
            ? File.ReadLines(Information).FirstOrDefault(line => line.StartsWith("model name", StringComparison.Ordinal)) : null;
        return model is null
            ? RuntimeInformation.ProcessArchitecture.ToString()
            : model[(model.IndexOf(':', StringComparison.Ordinal) + 1)..].Trim();
    }

    private static string OperatingSystemName()
    {
        const string KernelRelease = "/proc/sys/kernel/osrelease";
        return File.Exists(KernelRelease) ? $"Linux {File.ReadAllText(KernelRelease).Trim()}" : RuntimeInformation.OSDescription;
    }

    private static string FileSystemOf(string folder)
    {
        DriveInfo? drive = DriveInfo.GetDrives()
            .Where(drive => folder.StartsWith(drive.RootDirectory.FullName, StringComparison.OrdinalIgnoreCase))
            .MaxBy(drive => drive.RootDirectory.FullName.Length);
        return drive is null ? Unknown : drive.DriveFormat;
    }

    // The report's own folder does not count as a change.
    private static string CommitOf(string repository)
    {
        string? commit = Git(repository, "rev-parse --short=12 HEAD");
        string? changes = Git(repository, "status --porcelain --untracked-files=no -- src benchmarks/Pipelines.File.Benchmarks");
        return commit is null ? Unknown : string.IsNullOrEmpty(changes) ? commit
            : string.Create(CultureInfo.InvariantCulture, $"{commit} with changes");
    }

    private static string? Git(string repository, string arguments)
    {
        try
        {
            using Process? git = Process.Start(new ProcessStartInfo("git", arguments)
            {
                WorkingDirectory = repository,
                RedirectStandardOutput = true,
                RedirectStandardError = true,
            });
            string? output = git?.StandardOutput.ReadToEnd().Trim();
            git?.WaitForExit();
            return git?.ExitCode == 0 ? output : null;
        }
        catch (global::System.ComponentModel.Win32Exception)
        {
            return null;
        }
    }
}
