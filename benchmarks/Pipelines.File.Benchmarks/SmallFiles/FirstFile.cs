using System.Diagnostics;
using System.Globalization;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using Pipelines.File;

namespace FilePipelinesBenchmarks.SmallFiles;

/// <summary><c>first</c>: how long the first file of a process takes, with all that is loaded and compiled for it. Each time in a process of its own, every way in turn.</summary>
internal static class FirstFile
{
    /// <summary>Followed by the way and the path: the process of one time.</summary>
    internal const string AloneCommand = "first-alone";

    private const int FileLength = 4096;
    private const int DefaultRounds = 21;

    private static readonly string[] s_ways = ["PipeReader.Create(FileStream)", "FilePipeReader", "File.ReadAllBytes"];

    internal static async Task<int> RunAsync(string[] arguments)
    {
        int rounds = arguments is [var text] && int.TryParse(text, CultureInfo.InvariantCulture, out int given) && given > 0 ? given : DefaultRounds;
        using TemporaryFolder folder = new();
        string path = folder.PathOf("first.bin");
        await File.WriteAllBytesAsync(path, new byte[FileLength]);
        List<double>[] times = [.. s_ways.Select(_ => new List<double>())];
        for (int round = 0; round < rounds; round++)
        {
            for (int i = 0; i < s_ways.Length; i++)
            {
                using Process process = Process.Start(ProcessMeasurement.ThisProgram(AloneCommand, s_ways[i], path))!;
                times[i].Add(double.Parse(await process.StandardOutput.ReadToEndAsync(), CultureInfo.InvariantCulture));
                await process.WaitForExitAsync();
            }
        }

        Console.WriteLine($"The first file of a process, {FileLength:N0} bytes, ms: median (and quartiles) of {rounds} processes each, in turns");
        for (int i = 0; i < s_ways.Length; i++)
        {
            double[] sorted = [.. times[i].Order()];
            Console.WriteLine(string.Create(
                CultureInfo.InvariantCulture, $"{s_ways[i],-30} {sorted[rounds / 2],7:F1} ({sorted[rounds / 4]:F1} to {sorted[rounds * 3 / 4]:F1})"));
        }

        return 0;
    }

    /// <summary>Opens, reads and closes the file, and prints how many milliseconds that took.</summary>
    internal static int Read(string way, string path)
    {
        long begin = Stopwatch.GetTimestamp();
        long length = way == s_ways[0] ? ReadStream(path) : way == s_ways[1] ? ReadFile(path) : ReadAllBytes(path);
        double milliseconds = Stopwatch.GetElapsedTime(begin).TotalMilliseconds;
        Console.WriteLine(milliseconds.ToString(CultureInfo.InvariantCulture));
        return length == FileLength ? 0 : 1;
    }

    // Each by itself: what is compiled for one way is not for the others.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long ReadStream(string path)
        => ReadAllAsync(PipeReader.Create(new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0))).AsTask().GetAwaiter().GetResult();

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long ReadFile(string path) => ReadAllAsync(FilePipeReader.Create(path)).AsTask().GetAwaiter().GetResult();

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long ReadAllBytes(string path) => File.ReadAllBytes(path).Length;

    private static async ValueTask<long> ReadAllAsync(PipeReader reader)
    {
        long length = 0;
        ReadResult result;
        do
        {
            result = await reader.ReadAsync();
            length += result.Buffer.Length;
            reader.AdvanceTo(result.Buffer.End);
        }
        while (!result.IsCompleted);

        await reader.CompleteAsync();
        return length;
    }
}
