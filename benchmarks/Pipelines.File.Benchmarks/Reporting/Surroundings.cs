using System.Diagnostics;
using System.Globalization;
using System.Runtime;
using System.Runtime.InteropServices;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>What the figures depend on: the machine, its system, and the code.</summary>
internal sealed record Surroundings(string Machine, string System, string FileSystem, string Runtime, string Commit, DateTime Date)
{
    private const string Unknown = "not known";

    internal static Surroundings Look(string repository, string temporaryFolder)
        => new(
            $"{Processor()}, {Environment.ProcessorCount} logical processors, "
            + $"{GC.GetGCMemoryInfo().TotalAvailableMemoryBytes / (1L << 30)} GiB of memory",
            OperatingSystemName(),
            FileSystemOf(temporaryFolder),
            $"{RuntimeInformation.FrameworkDescription}, {RuntimeInformation.RuntimeIdentifier}, "
            + $"{(GCSettings.IsServerGC ? "server" : "workstation")} collector",
            CommitOf(repository),
            DateTime.UtcNow);

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
