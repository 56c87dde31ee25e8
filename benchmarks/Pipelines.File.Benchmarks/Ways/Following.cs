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
        int more = way.Threads - (way.Process is null ? threads : 0);
        await File.AppendAllTextAsync(paths[0], "the last\n");
        await first;
        return (cores, more);
    }

    /// <summary>Follows files from their end on, until it is stopped.</summary>
    /// <param name="NextLineAsync">The next line that comes to the first file is there.</param>
    /// <param name="Process">Who follows, if it is not this process.</param>
    private sealed record FollowWay(Func<Task> NextLineAsync, Func<ValueTask> StopAsync, Process? Process = null) : IAsyncDisposable
    {
        /// <summary>Processor time of whoever follows, so far.</summary>
        internal TimeSpan Cpu => Process is null ? Environment.CpuUsage.TotalTime : Process.GetProcessById(Process.Id).TotalProcessorTime;

        /// <summary>Threads of whoever follows.</summary>
        internal int Threads => Process.GetProcessById(Process?.Id ?? Environment.ProcessId).Threads.Count;

        public ValueTask DisposeAsync() => StopAsync();
    }

    // By name; each takes the files.
    private static readonly (string Name, Func<IReadOnlyList<string>, FollowWay> Start)[] s_ways =
    [
        ("FilePipeReader, Follow", Readers),
        ("LogFollower", static paths => LinesOf((lines, stop) => FollowAsync(
            new LogFollower(paths.Count == 1 ? paths[0] : Path.Join(Path.GetDirectoryName(paths[0]), "log*")), lines, stop))),
        ("FileStream, polled every 100 ms", static paths => LinesOf((lines, stop) => Task.WhenAll(
            paths.Select((path, index) => PollAsync(path, index == 0 ? lines : null, stop))))),
        ("tail -F", Tail),
    ];

    /// <summary>A read waits at the end of every file.</summary>
    private static FollowWay Readers(IReadOnlyList<string> paths)
    {
        FilePipeReader[] readers = [.. paths.Select(
            static path => FilePipeReader.Create(path, new FilePipeReaderOptions { Follow = true }))];
        Task<ReadResult>[]? reads = null;
        return new(
            async () =>
            {
                reads ??= [.. readers.Select(static reader => reader.ReadAsync().AsTask())];
                ReadResult result = await reads[0];
                readers[0].AdvanceTo(result.Buffer.End);
                reads[0] = readers[0].ReadAsync().AsTask();
            },
            async () =>
            {
                foreach ((FilePipeReader reader, Task<ReadResult> read) in readers.Zip(reads ?? []))
                {
                    reader.CancelPendingRead();
                    _ = await read;
                    await reader.CompleteAsync();
                }
            });
    }

    /// <summary>Tasks that release a semaphore for each line, until they are canceled.</summary>
    private static FollowWay LinesOf(Func<SemaphoreSlim, CancellationToken, Task> followAsync)
    {
        CancellationTokenSource stop = new();
        SemaphoreSlim lines = new(0);
        Task following = followAsync(lines, stop.Token);
        return new(() => lines.WaitAsync(), async () =>
        {
            await stop.CancelAsync();
            await following.ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        });
    }

    /// <summary>One follower for all: they are the logs of a folder.</summary>
    private static async Task FollowAsync(LogFollower follower, SemaphoreSlim lines, CancellationToken stop)
    {
        await foreach (FollowedBatch batch in follower.ReadBatchesAsync(1000, 1 << 20, TimeSpan.Zero, stop))
        {
            lines.Release(batch.Lines.Count);
        }
    }

    /// <summary>What programs do without help: a task a file that reads, and else sleeps.</summary>
    private static async Task PollAsync(string path, SemaphoreSlim? lines, CancellationToken stop)
    {
        byte[] buffer = new byte[4096];
        await using FileStream file = new(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete, bufferSize: 0);
        while (true)
        {
            int read = await file.ReadAsync(buffer, stop);
            if (buffer.AsSpan(0, read).Count((byte)'\n') is > 0 and int some)
            {
                lines?.Release(some);
            }

            if (read == 0)
            {
                await Task.Delay(PollMilliseconds, stop);
            }
        }
    }

    /// <summary>GNU tail, whose output comes through a pipe.</summary>
    private static FollowWay Tail(IReadOnlyList<string> paths)
    {
        Process process = Process.Start(new ProcessStartInfo("tail", ["-q", "-n", "0", "-F", .. paths]) { RedirectStandardOutput = true })!;
        return new(
            async () => _ = await process.StandardOutput.ReadLineAsync(),
            async () =>
            {
                process.Kill();
                await process.WaitForExitAsync();
                process.Dispose();
            },
            process);
    }
}

/// <summary>What came of one way to follow files.</summary>
/// <param name="Median">Milliseconds from before a line is appended until its follower has it.</param>
/// <param name="NinetyNinth">The same, 99th percentile.</param>
/// <param name="IdleCores">Processors that idle files keep busy, in per cent of one.</param>
/// <param name="Threads">Threads of the process meanwhile, the runtime's included.</param>
internal sealed record Followed(string Way, double Median, double NinetyNinth, double IdleCores, int Threads);
