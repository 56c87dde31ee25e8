namespace FilePipelinesBenchmarks.Measuring;

/// <summary>Programs of others that are measured where they are installed.</summary>
internal static class Programs
{
    internal static bool IsInstalled(string name)
        => (Environment.GetEnvironmentVariable("PATH") ?? string.Empty).Split(Path.PathSeparator).Any(
            folder => File.Exists(Path.Join(folder, name)));
}
