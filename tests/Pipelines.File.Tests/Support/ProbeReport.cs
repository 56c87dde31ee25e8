using System.Runtime.CompilerServices;
using Pipelines.File.Diagnostics;

namespace FilePipelinesTests;

/// <summary>
/// Writes the names of the rare branches that a run has reached (<see cref="Probe.Rare"/>, debug builds only) to the file that
/// PIPELINES_FILE_PROBES names. CONTRIBUTING.md has the command that lists the others.
/// </summary>
internal static class ProbeReport
{
    [ModuleInitializer]
    internal static void Begin()
    {
        if (Environment.GetEnvironmentVariable("PIPELINES_FILE_PROBES") is { Length: > 0 } path)
        {
            AppDomain.CurrentDomain.ProcessExit += (_, _) => File.AppendAllLines(path, Probe.Reached.Keys);
        }
    }
}
