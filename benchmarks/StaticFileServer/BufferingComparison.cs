using System.Diagnostics;
using System.Globalization;
using System.Net;
using Microsoft.AspNetCore.WebUtilities;
using Pipelines.File;

namespace StaticFileServer;

/// <summary>
/// A body that is read twice: <c>buffering FOLDER [SECONDS] [ROUNDS]</c> runs each way in a process of its own, in turns, server and
/// clients together, and prints medians. <c>drain</c> reads the body once and keeps nothing: what is left are server and clients.
/// </summary>
internal static class BufferingComparison
{
    private const int Clients = 4;

    private static readonly string[] s_ways = ["drain", "EnableBuffering", "FileBufferingWriteStream", "BufferBodyAsync"];
    private static readonly int[] s_sizes = [1 << 10, 64 << 10, 1 << 20, 100 << 20];

    internal static async Task RunAsync(string[] args)
    {
        if (args is ["alone", var one, var length, var folder, var duration])
        {
            await RunAloneAsync(one, Int(length), folder, TimeSpan.FromSeconds(double.Parse(duration, CultureInfo.InvariantCulture)));
            return;
        }

        string seconds = args.ElementAtOrDefault(1) ?? "2";
        int rounds = Int(args.ElementAtOrDefault(2) ?? "3");
        Console.WriteLine("bytes      way                        requests/s  CPU s/GiB  KiB allocated  peak MiB  pool threads  "
            + "files, MiB after a kill");
        foreach (int size in s_sizes)
        {
            Dictionary<string, List<double[]>> figures = s_ways.ToDictionary(way => way, _ => new List<double[]>());
            for (int round = 0; round < rounds; round++)
            {
                foreach (string way in s_ways)
                {
                    using Process process = Start(way, size, args[0], seconds);
                    string line = await process.StandardOutput.ReadToEndAsync();
                    await process.WaitForExitAsync();
                    figures[way].Add([.. line.Split(' ').Select(word => double.Parse(word, CultureInfo.InvariantCulture))]);
                }
            }

            foreach (string way in s_ways)
            {
                double[] medians = [.. Enumerable.Range(0, 5).Select(
                    i => figures[way].Select(run => run[i]).Order().ElementAt(rounds / 2))];
                (int files, double left) = await KillAsync(way, size, args[0]);
                Console.WriteLine(string.Create(CultureInfo.InvariantCulture,
                    $"{size,-10} {way,-25} {medians[0],11:F1} {medians[1],10:F2} {medians[2],14:F1} {medians[3],9:F0} {medians[4],13:F0}")
                    + string.Create(CultureInfo.InvariantCulture, $"  {files}, {left:F1}"));
            }
        }
    }

    private static int Int(string text) => int.Parse(text, CultureInfo.InvariantCulture);

    private static Process Start(string way, int size, string folder, string seconds)
        => Process.Start(new ProcessStartInfo(Environment.ProcessPath!, ["buffering", "alone", way, $"{size}", folder, seconds])
        {
            RedirectStandardOutput = true,
            Environment = { ["ASPNETCORE_TEMP"] = folder },
        })!;

    /// <summary>What a process leaves that is killed in the middle.</summary>
    private static async Task<(int Files, double MebiBytes)> KillAsync(string way, int size, string folder)
    {
        string own = Directory.CreateDirectory(Path.Combine(folder, "killed")).FullName;
        using Process process = Start(way, size, own, "60");
        await Task.Delay(TimeSpan.FromSeconds(2));
        process.Kill();
        await process.WaitForExitAsync();
        FileInfo[] left = new DirectoryInfo(own).GetFiles("*", new EnumerationOptions { AttributesToSkip = 0 });
        (int, double) result = (left.Length, left.Sum(file => file.Length) / (1024.0 * 1024));
        Directory.Delete(own, recursive: true);
        return result;
    }

    private static async Task RunAloneAsync(string way, int size, string folder, TimeSpan duration)
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.ConfigureKestrel(kestrel =>
        {
            kestrel.Listen(IPAddress.Loopback, 0);
            kestrel.Limits.MaxRequestBodySize = null;
        });
        await using WebApplication app = builder.Build();
        FileBufferingPipeOptions options = new() { Folder = folder };
        app.Run(async context =>
        {
            HttpRequest request = context.Request;
            switch (way)
            {
                case "EnableBuffering":
                    request.EnableBuffering();
                    await request.Body.CopyToAsync(Stream.Null);
                    request.Body.Position = 0;
                    await request.Body.CopyToAsync(Stream.Null);
                    break;
                case "FileBufferingWriteStream":
                    await using (FileBufferingWriteStream buffer = new())
                    {
                        await request.Body.CopyToAsync(buffer);
                        await buffer.DrainBufferAsync(Stream.Null);
                    }

                    break;
                case "BufferBodyAsync":
                    _ = await request.BufferBodyAsync(options);
                    await request.Body.CopyToAsync(Stream.Null);
                    break;
                default:
                    await request.Body.CopyToAsync(Stream.Null);
                    break;
            }
        });
        await app.StartAsync();
        using HttpClient client = new() { BaseAddress = new Uri(app.Urls.First()) };
        byte[] body = new byte[size];
        Random.Shared.NextBytes(body);
        await SendAsync(duration / 4);
        Process self = Process.GetCurrentProcess();
        TimeSpan cpu = self.TotalProcessorTime;
        long allocated = GC.GetTotalAllocatedBytes();
        long begun = Stopwatch.GetTimestamp();
        long count = await SendAsync(duration);
        double seconds = Stopwatch.GetElapsedTime(begun).TotalSeconds;
        self.Refresh();
        double cpuSeconds = (self.TotalProcessorTime - cpu).TotalSeconds;
        double kibiBytes = (GC.GetTotalAllocatedBytes() - allocated) / 1024.0;
        double gibiBytes = (double)count * size / (1 << 30);
        Console.Write(string.Create(CultureInfo.InvariantCulture,
            $"{count / seconds} {cpuSeconds / gibiBytes} {kibiBytes / count} {self.PeakWorkingSet64 >> 20} {ThreadPool.ThreadCount}"));

        async Task<long> SendAsync(TimeSpan duration)
        {
            long end = Stopwatch.GetTimestamp() + (long)(duration.TotalSeconds * Stopwatch.Frequency);
            long[] counts = await Task.WhenAll(Enumerable.Range(0, Clients).Select(_ => Task.Run(async () =>
            {
                long sent = 0;
                do
                {
                    using HttpResponseMessage response = await client.PostAsync("/", new ByteArrayContent(body));
                    response.EnsureSuccessStatusCode();
                    sent++;
                }
                while (Stopwatch.GetTimestamp() < end);
                return sent;
            })));
            return counts.Sum();
        }
    }
}
