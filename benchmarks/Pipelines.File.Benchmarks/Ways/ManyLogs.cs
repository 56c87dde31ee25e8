using System.Diagnostics;
using System.Globalization;
using Pipelines.File;

namespace FilePipelines.Benchmarks;

/// <summary>
/// <c>logs</c>: what LogFollower costs with many logs, and beside rsyslog's imfile, if that is installed, on the same work. Linux.
/// </summary>
internal static class ManyLogs
{
    private const int OtherFiles = 8000;
    private const int Lines = 2_000_000;
    private const int LineLength = 100;
    private const int LateLines = 2000;
    private const int Rotations = 10;

    internal static async Task<int> RunAsync(string[] arguments)
    {
        if (new Arguments(arguments, "logs").AreWrong())
        {
            return 2;
        }

        await ManyAsync(60);
        await ManyAsync(960);
        foreach ((string name, Func<string, string, IAsyncDisposable> start) in Shippers())
        {
            await ShipAsync(name, start);
        }

        return 0;
    }

    private static IEnumerable<(string Name, Func<string, string, IAsyncDisposable> Start)> Shippers()
    {
        yield return ("LogFollower", static (log, output) => new FollowerToFile(log, output));
        if (File.Exists(Rsyslog.Program))
        {
            yield return ("rsyslog imfile", static (log, output) => new Rsyslog(log, output));
        }
    }

    /// <summary>The first lines of many logs in a folder with far more files; then what they cost while nothing comes.</summary>
    private static async Task ManyAsync(int logs)
    {
        using TemporaryFolder folder = new();
        for (int i = 0; i < logs; i++)
        {
            await File.WriteAllTextAsync(folder.PathOf($"{i}.log"), "a line\n");
        }

        for (int i = 0; i < OtherFiles; i++)
        {
            await File.WriteAllBytesAsync(folder.PathOf($"{i}.other"), []);
        }

        using Process process = Process.GetCurrentProcess();
        long heap = GC.GetTotalMemory(true);
        long memory = Environment.WorkingSet;
        foreach (bool isOneSet in (bool[])[true, false])
        {
            Stopwatch time = Stopwatch.StartNew();
            TimeSpan used = process.TotalProcessorTime;
            using CancellationTokenSource ended = new();
            CountdownEvent first = new(logs);
            string[] paths = isOneSet ? [folder.PathOf("*.log")]
                : [.. Enumerable.Range(0, logs).Select(i => folder.PathOf($"{i}.log"))];
            Task[] following = [.. paths.Select(path => Task.Run(() => FollowAsync(path, first, ended.Token)))];
            first.Wait();
            process.Refresh();
            string followers = isOneSet ? "one follower" : "a follower each";
            Console.WriteLine($"{logs} logs among {logs + OtherFiles} files, {followers}: first lines {Seconds(time.Elapsed)}, "
                + $"CPU {Seconds(process.TotalProcessorTime - used)}");
            await Task.Delay(TimeSpan.FromSeconds(4));
            GC.Collect();
            process.Refresh();
            used = process.TotalProcessorTime;
            await Task.Delay(TimeSpan.FromSeconds(5));
            process.Refresh();
            Console.WriteLine(string.Create(CultureInfo.InvariantCulture,
                $"  at rest: {(process.TotalProcessorTime - used) / TimeSpan.FromSeconds(5):P2} of a core, "
                + $"{process.Threads.Count} threads, {(Environment.WorkingSet - memory) / 1e6:F0} MB more memory, "
                + $"{(GC.GetTotalMemory(true) - heap) / 1024.0 / logs:F1} KiB on the heap for each log"));
            await ended.CancelAsync();
            await Task.WhenAll(following);
        }
    }

    private static async Task FollowAsync(string path, CountdownEvent first, CancellationToken ended)
    {
        try
        {
            await foreach (FollowedBatch batch in new LogFollower(path).ReadBatchesAsync(1000, 1 << 20, TimeSpan.Zero, ended))
            {
                first.Signal();
            }
        }
        catch (OperationCanceledException)
        {
            // That is enough.
        }
    }

    /// <summary>A log is caught up, then lines come one by one, then it is rotated while lines come.</summary>
    private static async Task ShipAsync(string name, Func<string, string, IAsyncDisposable> start)
    {
        using TemporaryFolder folder = new();
        (string log, string output) = (folder.PathOf("app.log"), folder.PathOf("shipped"));
        await using (StreamWriter writer = new(log))
        {
            for (int i = 0; i < Lines; i++)
            {
                await writer.WriteAsync(LineOf(i));
            }
        }

        Stopwatch time = Stopwatch.StartNew();
        int next = Lines;
        List<double> late = new(LateLines);
        IAsyncDisposable shipper = start(log, output);
        await using (shipper)
        {
            await UntilAsync(output, (long)Lines * LineLength, 120);
            Console.WriteLine(string.Create(CultureInfo.InvariantCulture,
                $"{name}: {Lines * (double)LineLength / 1e6 / time.Elapsed.TotalSeconds:F0} MB/s of catching up"));
            FileStream file = Open(log);
            for (int i = 0; i < LateLines; i++)
            {
                file.Write(System.Text.Encoding.ASCII.GetBytes(LineOf(next++)));
                long begin = Stopwatch.GetTimestamp();
                SpinWait wait = default;
                while (new FileInfo(output).Length < (long)next * LineLength && Stopwatch.GetElapsedTime(begin).TotalSeconds < 5)
                {
                    wait.SpinOnce(sleep1Threshold: -1);
                }

                late.Add(Stopwatch.GetElapsedTime(begin).TotalMilliseconds);
                Thread.Sleep(1);
            }

            late.Sort();
            Console.WriteLine(string.Create(CultureInfo.InvariantCulture,
                $"{name}: a line is late by {late[LateLines / 2]:F2} ms (median), {late[LateLines * 99 / 100]:F2} ms (p99)"));
            for (int i = 0; i < Rotations; i++)
            {
                for (int line = 0; line < 20_000; line++)
                {
                    file.Write(System.Text.Encoding.ASCII.GetBytes(LineOf(next++)));
                }

                file.Dispose();
                for (int number = i; number > 0; number--)
                {
                    File.Move($"{log}.{number}", $"{log}.{number + 1}");
                }

                File.Move(log, log + ".1");
                file = Open(log);
                Thread.Sleep(100);
            }

            file.Write(System.Text.Encoding.ASCII.GetBytes(LineOf(next++)));
            file.Dispose();
            await UntilAsync(output, (long)next * LineLength, 15);
        }

        HashSet<int> seen = [];
        int twice = 0;
        foreach (string line in File.ReadLines(output))
        {
            bool isLine = int.TryParse(line.AsSpan(0, Math.Min(12, line.Length)), CultureInfo.InvariantCulture, out int number);
            twice += isLine && !seen.Add(number) ? 1 : 0;
        }

        Console.WriteLine($"{name}: {Rotations} rotations, {next - seen.Count} lines lost, {twice} twice");
    }

    private static FileStream Open(string path)
        => new(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite | FileShare.Delete, bufferSize: 0);

    private static string LineOf(int number)
        => number.ToString("D12", CultureInfo.InvariantCulture) + new string('.', LineLength - 13) + "\n";

    private static async Task UntilAsync(string path, long length, int seconds)
    {
        Stopwatch time = Stopwatch.StartNew();
        while (time.Elapsed.TotalSeconds < seconds && (!File.Exists(path) || new FileInfo(path).Length < length))
        {
            await Task.Delay(2);
        }
    }

    private static string Seconds(TimeSpan time) => string.Create(CultureInfo.InvariantCulture, $"{time.TotalSeconds:F2} s");

    /// <summary>LogFollower, and a writer that writes out the lines again.</summary>
    private sealed class FollowerToFile : IAsyncDisposable
    {
        private readonly CancellationTokenSource _ended = new();
        private readonly Task _shipping;

        internal FollowerToFile(string log, string output) => _shipping = Task.Run(() => RunAsync(log, output));

        public async ValueTask DisposeAsync()
        {
            await _ended.CancelAsync();
            await _shipping;
            _ended.Dispose();
        }

        private async Task RunAsync(string log, string output)
        {
            await using FilePipeWriter writer = FilePipeWriter.Create(output);
            try
            {
                await foreach (FollowedBatch batch in new LogFollower(log).ReadBatchesAsync(5000, 1 << 20, TimeSpan.Zero, _ended.Token))
                {
                    foreach (FollowedLine line in batch.Lines)
                    {
                        Span<byte> room = writer.GetSpan(line.Bytes.Length + 1);
                        line.Bytes.Span.CopyTo(room);
                        room[line.Bytes.Length] = (byte)'\n';
                        writer.Advance(line.Bytes.Length + 1);
                    }

                    await writer.FlushAsync(FlushGuarantee.Written);
                }
            }
            catch (OperationCanceledException)
            {
                await writer.CompleteAsync();
            }
        }
    }

    /// <summary>rsyslogd(8) with imfile and omfile, by itself.</summary>
    private sealed class Rsyslog : IAsyncDisposable
    {
        internal const string Program = "/usr/sbin/rsyslogd";

        private readonly TemporaryFolder _folder = new();
        private readonly Process _process;

        internal Rsyslog(string log, string output)
        {
            string configuration = _folder.PathOf("rsyslog.conf");
            File.WriteAllText(configuration, $$"""
                global(workDirectory="{{_folder.PathOf("")}}" maxMessageSize="8k")
                module(load="imfile" mode="inotify")
                template(name="line" type="string" string="%msg%\n")
                input(type="imfile" file="{{log}}" tag="x" ruleset="out" escapeLF="off")
                ruleset(name="out") { action(type="omfile" file="{{output}}" template="line" asyncWriting="off" flushOnTXEnd="on") }
                """);
            _process = Process.Start(Program, ["-n", "-f", configuration, "-i", _folder.PathOf("pid")]);
        }

        public async ValueTask DisposeAsync()
        {
            _process.Kill();
            await _process.WaitForExitAsync();
            _process.Dispose();
            _folder.Dispose();
        }
    }
}
