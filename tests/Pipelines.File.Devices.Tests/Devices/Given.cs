using System.Globalization;

namespace FilePipelines.Devices.Tests;

/// <summary>How long and how often, from the environment.</summary>
internal static class Given
{
    /// <summary>PIPELINES_FILE_CUTS: the power cuts of each file system and workload.</summary>
    internal static int Cuts { get; } = Number("PIPELINES_FILE_CUTS", 25);

    /// <summary>PIPELINES_FILE_FAILURES: the disks of each file system and way of failing.</summary>
    internal static int Failures { get; } = Number("PIPELINES_FILE_FAILURES", 2);

    /// <summary>PIPELINES_FILE_CRASH_SECONDS: how long the crash program is killed and started again.</summary>
    internal static int CrashSeconds { get; } = Number("PIPELINES_FILE_CRASH_SECONDS", 8);

    /// <summary>PIPELINES_FILE_SEED: where random choices begin.</summary>
    internal static int Seed { get; } = Number("PIPELINES_FILE_SEED", Random.Shared.Next());

    /// <summary>PIPELINES_FILE_WORKLOAD: only this one is cut off; <see langword="null"/>: all.</summary>
    internal static string? Workload { get; } = Environment.GetEnvironmentVariable("PIPELINES_FILE_WORKLOAD");

    private static int Number(string name, int otherwise)
        => int.TryParse(Environment.GetEnvironmentVariable(name), CultureInfo.InvariantCulture, out int given) ? given : otherwise;
}
