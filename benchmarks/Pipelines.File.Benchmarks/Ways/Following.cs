using System.Diagnostics;
using System.Globalization;
using System.IO.Pipelines;
using Pipelines.File;

namespace FilePipelines.Benchmarks;

/// <summary><c>follow</c>: how late a line is while one file is followed, and what a thousand idle files cost. Linux.</summary>
internal static class Following
{
    /// <summary>How many files are idle.</summary>
    internal const int IdleFiles = 1000;
    private const int Lines = 1000;
    private const int WarmUpLines = 20;
    private const int LeastLines = 20;

    // Lines come at any moment of a poll's interval, whenever the last one was seen: a fixed wait behind that would be a poll's worst case.
    private const int PollMilliseconds = 100;
    private const int SettleMilliseconds = 1500;

    /// <summary>How long lines come to one way.</summary>
    internal static TimeSpan DefaultTime { get; } = TimeSpan.FromSeconds(8);

    internal static async Task<int> RunAsync(string[] arguments)
    {
        if (new Arguments(arguments, "follow").AreWrong())
        {
            return 2;
        }

        Console.Write(ToCsv(await MeasureAsync(DefaultTime)));
        return 0;
    }

    internal static string ToCsv(IEnumerable<Followed> figures)
        => string.Concat(figures.Select(way => string.Create(CultureInfo.InvariantCulture,
            $"{Figures.Quoted(way.Way)},{way.Median:0.000},{way.NinetyNinth:0.000},{way.IdleCores:0.000},{way.Threads}\n"))
            .Prepend("method,ms_median,ms_99th_percentile,idle_percent_of_a_core,threads\n"));

    /// <summary>Measures all ways.</summary>
    /// <param name="time">How long lines come to each, at most, and half as long nothing comes.</param>
    internal static async Task<IReadOnlyList<Followed>> MeasureAsync(TimeSpan time)
    {
        List<Followed> figures = [];
        foreach ((string name, Func<IReadOnlyList<string>, FollowWay> start) in s_ways)
        {
            double[] late = await LatenessAsync(start, time);
            (double cores, int threads) = await IdleAsync(start, time / 2);
            figures.Add(new Followed(name, late[late.Length / 2], late[(int)((late.Length - 1) * 0.99)], cores, threads));
        }

        return figures;
    }

    private static async Task<double[]> LatenessAsync(Func<IReadOnlyList<string>, FollowWay> start, TimeSpan time)
    {
        using TemporaryFolder folder = new();
        string path = folder.PathOf("log");
        await using FileStream file = new(path, FileMode.CreateNew, FileAccess.Write, FileShare.ReadWrite, bufferSize: 0);
        await using FollowWay way = start([path]);
        await Task.Delay(SettleMilliseconds / 3);
        List<double> late = new(Lines);
        Task[] waiting = new Task[1];
        Random random = new(Seed: 3);
        long first = Stopwatch.GetTimestamp();
        for (int i = 0; i < WarmUpLines + LeastLines || (i < WarmUpLines + Lines && Stopwatch.GetElapsedTime(first) < time); i++)
        {
            waiting[0] = way.NextLineAsync();
            long begin = Stopwatch.GetTimestamp();
            file.Write("2026-08-01T12:00:00.000Z INFO a line as logs have them, of about eighty bytes or so\n"u8);
            await waiting[0];
            if (i >= WarmUpLines)
            {
                late.Add(Stopwatch.GetElapsedTime(begin).TotalMilliseconds);
            }

            await Task.Delay(TimeSpan.FromMilliseconds(PollMilliseconds * random.NextDouble()));
        }

        late.Sort();
        return [.. late];
    }

    private static async Task<(double Cores, int Threads)> IdleAsync(Func<IReadOnlyList<string>, FollowWay> start, TimeSpan time)
    {
        using TemporaryFolder folder = new();
        string[] paths = [.. Enumerable.Range(0, IdleFiles).Select(i => folder.PathOf($"log{i}"))];
        foreach (string path in paths)
        {
            await File.WriteAllTextAsync(path, "a line\n");
        }

        int threads = Process.GetCurrentProcess().Threads.Count;
        await using FollowWay way = start(paths);
        Task first = way.NextLineAsync();
        await Task.Delay(SettleMilliseconds);
        TimeSpan cpu = way.Cpu;
        long begin = Stopwatch.GetTimestamp();
        await Task.Delay(time);
        double cores = (way.Cpu - cpu) / Stopwatch.GetElapsedTime(begin) * 100;
        int more = way.Threads - (way.Cpu.Ticks > 0 && way.Threads >= threads ? threads : 0);
        await File.AppendAllTextAsync(paths[0], "the last\n");
        await first;
        return (cores, more);
    }

    /// <summary>Follows files from their end on, until it is disposed.</summary>
    private abstract class FollowWay : IAsyncDisposable
    {
        /// <summary>Processor time of whoever follows, so far.</summary>
        internal virtual TimeSpan Cpu => Environment.CpuUsage.TotalTime;

        /// <summary>Threads of whoever follows.</summary>
        internal virtual int Threads => Process.GetCurrentProcess().Threads.Count;

        /// <summary>The next line that comes to the first file is there.</summary>
        internal abstract Task NextLineAsync();

        public abstract ValueTask DisposeAsync();
    }

    // By name; each takes the files.
    private static readonly (string Name, Func<IReadOnlyList<string>, FollowWay> Start)[] s_ways =
    [
        ("FilePipeReader, Follow", static paths => new Waiting(paths)),
        ("LogFollower", static paths => new LogLines(paths)),
        ("FileStream, polled every 100 ms", static paths => new Polled(paths)),
        ("tail -F", static paths => new TailProcess(paths)),
    ];

    /// <summary>A read waits at the end of every file.</summary>
    private sealed class Waiting(IReadOnlyList<string> paths) : FollowWay
    {
        private readonly FilePipeReader[] _readers = [.. paths.Select(
            static path => FilePipeReader.Create(path, new FilePipeReaderOptions { Follow = true }))];
        private Task<ReadResult>[]? _reads;

        internal override async Task NextLineAsync()
        {
            _reads ??= [.. _readers.Select(static reader => reader.ReadAsync().AsTask())];
            ReadResult result = await _reads[0];
            _readers[0].AdvanceTo(result.Buffer.End);
            _reads[0] = _readers[0].ReadAsync().AsTask();
        }

        public override async ValueTask DisposeAsync()
        {
            foreach ((FilePipeReader reader, Task<ReadResult> read) in _readers.Zip(_reads ?? []))
            {
                reader.CancelPendingRead();
                _ = await read;
                await reader.CompleteAsync();
            }
        }
    }

    /// <summary>One follower for all: they are the logs of a folder.</summary>
    private sealed class LogLines : FollowWay
    {
        private readonly CancellationTokenSource _stop = new();
        private readonly SemaphoreSlim _lines = new(0);
        private readonly Task _following;

        internal LogLines(IReadOnlyList<string> paths)
            => _following = FollowAsync(new LogFollower(paths.Count == 1 ? paths[0] : Path.Join(Path.GetDirectoryName(paths[0]), "log*")));

        internal override Task NextLineAsync() => _lines.WaitAsync();

        public override async ValueTask DisposeAsync()
        {
            await _stop.CancelAsync();
            await _following.ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }

        private async Task FollowAsync(LogFollower follower)
        {
            await foreach (FollowedBatch batch in follower.ReadBatchesAsync(1000, 1 << 20, TimeSpan.Zero, _stop.Token))
            {
                _lines.Release(batch.Lines.Count);
            }
        }
    }

    /// <summary>What programs do without help: a task a file that reads, and else sleeps.</summary>
    private sealed class Polled : FollowWay
    {
        private readonly CancellationTokenSource _stop = new();
        private readonly SemaphoreSlim _lines = new(0);
        private readonly Task[] _polls;

        internal Polled(IReadOnlyList<string> paths) => _polls = [.. paths.Select((path, index) => PollAsync(path, index == 0))];

        internal override Task NextLineAsync() => _lines.WaitAsync();

        public override async ValueTask DisposeAsync()
        {
            await _stop.CancelAsync();
            await ((Task)Task.WhenAll(_polls)).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }

        private async Task PollAsync(string path, bool isFirst)
        {
            byte[] buffer = new byte[4096];
            await using FileStream file = new(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete, bufferSize: 0);
            while (true)
            {
                int read = await file.ReadAsync(buffer, _stop.Token);
                int lines = buffer.AsSpan(0, read).Count((byte)'\n');
                if (isFirst && lines > 0)
                {
                    _lines.Release(lines);
                }

                if (read == 0)
                {
                    await Task.Delay(PollMilliseconds, _stop.Token);
                }
            }
        }
    }

    /// <summary>GNU tail, whose output comes through a pipe.</summary>
    private sealed class TailProcess : FollowWay
    {
        private readonly Process _process;

        internal TailProcess(IReadOnlyList<string> paths)
            => _process = Process.Start(new ProcessStartInfo("tail", ["-q", "-n", "0", "-F", .. paths]) { RedirectStandardOutput = true })!;

        internal override TimeSpan Cpu => Process.GetProcessById(_process.Id).TotalProcessorTime;

        internal override int Threads => Process.GetProcessById(_process.Id).Threads.Count;

        internal override async Task NextLineAsync() => _ = await _process.StandardOutput.ReadLineAsync();

        public override async ValueTask DisposeAsync()
        {
            _process.Kill();
            await _process.WaitForExitAsync();
            _process.Dispose();
        }
    }
}

/// <summary>What came of one way to follow files.</summary>
/// <param name="Median">Milliseconds from before a line is appended until its follower has it.</param>
/// <param name="NinetyNinth">The same, 99th percentile.</param>
/// <param name="IdleCores">Processors that idle files keep busy, in per cent of one.</param>
/// <param name="Threads">Threads of the process meanwhile, the runtime's included.</param>
internal sealed record Followed(string Way, double Median, double NinetyNinth, double IdleCores, int Threads);
