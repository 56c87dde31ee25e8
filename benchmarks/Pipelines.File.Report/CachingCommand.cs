using System.Diagnostics;
using System.Globalization;
using System.IO.Pipelines;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// <c>caching [--gib N] [--rounds N] [--svg FILE]</c>: reads a cold file with each <see cref="FileCaching"/>, and tells how fast, for how
/// much CPU time, and what the page cache of the machine (Cached in /proc/meminfo) does meanwhile; the picture is of the last round. Linux.
/// </summary>
internal static class CachingCommand
{
    private const int MiB = 1024 * 1024;
    private const int SampleMilliseconds = 20;

    internal static async Task<int> RunAsync(string[] arguments)
    {
        Arguments given = new(arguments, "caching [--gib N] [--rounds N] [--svg FILE]");
        long length = (long)given.Number("--gib", 3) << 30;
        int rounds = given.Number("--rounds", 1);
        string? picture = given.Text("--svg");
        if (given.AreWrong())
        {
            return 2;
        }

        using TemporaryFolder folder = new();
        string path = folder.PathOf("large");
        Write(path, length);
        List<(string Name, IReadOnlyList<(double X, double Y)> Points)> lines = [];
        FileCaching[] ways = [FileCaching.Keep, FileCaching.DropBehind];
        foreach (FileCaching way in ways)
        {
            // What has to be compiled is.
            _ = await ReadAsync(path, way, 64 * MiB);
        }

        for (int round = 0; round < rounds; round++)
        {
            lines.Clear();
            foreach (FileCaching way in ways)
            {
                PageCache.Evict(path);
                await Task.Delay(500);
                lines.Add((way.ToString(), await MeasureAsync(path, way, length)));
            }
        }

        if (picture is not null)
        {
            string title = string.Create(
                CultureInfo.InvariantCulture, $"What a cold read of {length >> 30} GiB adds to the page cache, MiB");
            await File.WriteAllTextAsync(picture, TimeChart.Draw(title, "seconds", 1024, lines));
        }

        return 0;
    }

    private static async Task<IReadOnlyList<(double X, double Y)>> MeasureAsync(string path, FileCaching way, long length)
    {
        List<(double X, double Y)> points = [];
        using CancellationTokenSource stop = new();
        Process process = Process.GetCurrentProcess();
        TimeSpan used = process.TotalProcessorTime;
        long cached = CachedKiB();
        Stopwatch time = Stopwatch.StartNew();
        Thread sampler = new(() =>
        {
            do
            {
                points.Add((time.Elapsed.TotalSeconds, (CachedKiB() - cached) / 1024.0));
            }
            while (!stop.Token.WaitHandle.WaitOne(SampleMilliseconds));
            points.Add((time.Elapsed.TotalSeconds, (CachedKiB() - cached) / 1024.0));
        });
        sampler.Start();
        long read = await ReadAsync(path, way, length);
        TimeSpan elapsed = time.Elapsed;
        await stop.CancelAsync();
        sampler.Join();
        process.Refresh();
        Console.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"{way,-10} {read / (double)MiB / elapsed.TotalSeconds,6:0} MiB/s "
            + $"{(process.TotalProcessorTime - used).TotalSeconds / (read / (double)(1 << 30)),6:0.00} CPU s/GiB "
            + $"{points[^1].Y,6:0} MiB more cached"));
        return points;
    }

    private static async Task<long> ReadAsync(string path, FileCaching way, long length)
    {
        FilePipeReader reader = FilePipeReader.Create(path, new() { Caching = way, Length = length });
        long read = 0;
        ReadResult result;
        do
        {
            result = await reader.ReadAsync();
            read += result.Buffer.Length;
            reader.AdvanceTo(result.Buffer.End);
        }
        while (!result.IsCompleted);
        await reader.CompleteAsync();
        return read;
    }

    private static void Write(string path, long length)
    {
        byte[] piece = new byte[4 * MiB];
        new Random(1).NextBytes(piece);
        using SafeFileHandle handle = File.OpenHandle(path, FileMode.CreateNew, FileAccess.Write);
        for (long offset = 0; offset < length; offset += piece.Length)
        {
            RandomAccess.Write(handle, piece, offset);
        }
    }

    private static long CachedKiB()
    {
        foreach (string line in File.ReadLines("/proc/meminfo"))
        {
            if (line.StartsWith("Cached:", StringComparison.Ordinal))
            {
                return long.Parse(line.Split(' ', StringSplitOptions.RemoveEmptyEntries)[1], CultureInfo.InvariantCulture);
            }
        }

        throw new NotSupportedException("/proc/meminfo has no Cached.");
    }
}
