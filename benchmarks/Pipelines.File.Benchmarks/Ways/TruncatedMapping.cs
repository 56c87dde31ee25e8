using System.Diagnostics;
using System.Globalization;
using System.IO.MemoryMappedFiles;

namespace FilePipelines.Benchmarks;

/// <summary>
/// <c>truncated-mapping</c>: truncates a file that it has mapped, and touches it. The system raises SIGBUS, .NET ends the process: the
/// report starts another one for it. Unix.
/// </summary>
internal static class TruncatedMapping
{
    internal const string Command = "truncated-mapping";

    internal static int Run()
    {
        using TemporaryFolder folder = new();
        string path = folder.PathOf("truncated.bin");
        File.WriteAllBytes(path, new byte[1024 * 1024]);
        using MemoryMappedFile mapped = MemoryMappedFile.CreateFromFile(path, FileMode.Open, mapName: null, 0, MemoryMappedFileAccess.Read);
        using MemoryMappedViewAccessor view = mapped.CreateViewAccessor(0, 0, MemoryMappedFileAccess.Read);
        using (FileStream file = new(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite))
        {
            file.SetLength(0);
        }

        return view.ReadByte(0);
    }

    /// <summary>What such a process ends with: its status, and what .NET says of it.</summary>
    internal static async Task<string> RunInAnotherProcessAsync()
    {
        ProcessStartInfo start = ProcessMeasurement.Program(Command);

        // A core dump of it is of no use to anybody.
        start.Environment["DOTNET_DbgEnableMiniDump"] = "0";
        using TemporaryFolder folder = new();
        start.Environment["TMPDIR"] = folder.Path;
        using Process process = Process.Start(start)!;
        Task<string> output = process.StandardOutput.ReadToEndAsync();
        Task<string> errors = process.StandardError.ReadToEndAsync();
        await Task.WhenAll(output, errors, process.WaitForExitAsync());
        string exception =
            (await errors).Split('\n').FirstOrDefault(line => line.Contains("Exception:", StringComparison.Ordinal)) ?? string.Empty;
        return string.Create(CultureInfo.InvariantCulture, $"status {process.ExitCode} {exception.Split(':')[0]}").Trim();
    }
}
