using System.IO.Compression;

namespace FilePipelines.Tests;

/// <summary>
/// A log that is written fast and rotated by logrotate(8), and a shipper in a process of its own that is killed at random moments: every
/// line comes once, or after a kill those since the last checkpoint twice. PIPELINES_FILE_ROTATIONS (4) and PIPELINES_FILE_LOG_RATE (10, in
/// MB/s) make it a long run, PIPELINES_FILE_STYLE one of one style, as the output names it; PIPELINES_FILE_SEED repeats the moments of
/// the kills.
/// </summary>
[Collection("whole process")]
[Trait("Category", StressTime.Category)]
public sealed class LogrotateKillTests : FileTests
{
    private const int LineLength = 100;
    private const int NumberLength = 12;

    /// <summary>Lines of one write, so that none is torn by the writer.</summary>
    private const int LinesAtOnce = 200;

    private static readonly int s_rotations = (int)Given("PIPELINES_FILE_ROTATIONS", 4);
    private static readonly double s_bytesPerSecond = Given("PIPELINES_FILE_LOG_RATE", 10) * 1e6;

    private readonly string _log;
    private readonly string _output;
    // Is there from the rotation until the writer has opened the new file: what is written to a file that gzip reads may be lost.
    private readonly string _hangUp;

    public LogrotateKillTests() => (_log, _output, _hangUp) = (_folder.File("log"), _folder.File("shipped"), _folder.File("hang-up"));

    [Theory]
    [InlineData("create")]
    [InlineData("create\n compress")]
    [InlineData("create\n compress\n delaycompress")]
    [InlineData("create\n dateext\n dateformat -%Y%m%d-%s")]
    [InlineData("create\n compress\n dateext\n dateformat -%Y%m%d-%s")]
    [InlineData("nocreate\n olddir old")]
    public Task Create_EveryLineComesAndOnlyAKillRepeatsSome(string mode) => RunAsync(mode, isCut: false);

    [Theory]
    [InlineData("copytruncate")]
    [InlineData("copytruncate\n compress")]
    [InlineData("copytruncate\n dateext\n dateformat -%Y%m%d-%s")]
    public Task CopyTruncate_WhatLogrotateKeepsComesAndOnlyAKillRepeatsSome(string mode) => RunAsync(mode, isCut: true);

    private static double Given(string name, double otherwise)
        => double.TryParse(Environment.GetEnvironmentVariable(name), CultureInfo.InvariantCulture, out double given) ? given : otherwise;

    private async Task RunAsync(string mode, bool isCut)
    {
        ChildProcess.SkipUnlessLinux("logrotate");
        string style = mode.Replace("\n", "", StringComparison.Ordinal);
        Assert.SkipUnless((Environment.GetEnvironmentVariable("PIPELINES_FILE_STYLE") ?? style) == style, "Another style is wanted.");
        int seed = FuzzTime.Seed;
        Directory.CreateDirectory(_folder.File("old"));
        string configuration = _folder.File("logrotate.conf", Encoding.UTF8.GetBytes(
            $"{_log} {{\n {mode}\n rotate {s_rotations + 1}\n missingok\n"
            + (isCut ? "}\n" : $" postrotate\n  touch {_hangUp}\n  while [ -e {_hangUp} ]; do sleep 0.01; done\n endscript\n}}\n")));
        if (OperatingSystem.IsLinux())
        {
            File.SetUnixFileMode(configuration, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        using GrowingFile file = new(_log);
        using CancellationTokenSource rotated = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        using CancellationTokenSource over = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        Task<long> writing = Task.Run(() => WriteAsync(file, isCut, rotated.Token), _stop);
        Task<int> shipping = Task.Run(() => ShipAsync(new Random(seed), writing, over), _stop);
        try
        {
            // What is rotated before it has looked for the first time, it does not know of.
            await Eventually.TrueAsync(() => shipping.IsFaulted || File.Exists($"{_output}.position"));
            for (int i = 0; i < s_rotations && !shipping.IsFaulted; i++)
            {
                (int status, string output, string error) = await ChildProcess.RunAsync(
                    $"timeout 600 logrotate -f -s '{_folder.File("state")}' '{configuration}'");
                Assert.True(status == 0, output + error);

                // A date counts seconds, and logrotate replaces nothing.
                await Task.Delay(mode.Contains("dateext", StringComparison.Ordinal) ? 1100 : 100, _stop);
            }

            await rotated.CancelAsync();
            long written = await writing;
            int kills = await shipping;
            string result = Check(await File.ReadAllLinesAsync(_output, _stop), written, isCut);
            TestContext.Current.SendDiagnosticMessage(
                $"{style}: {written} lines, {s_rotations} rotations, {kills} kills; {result}; " + $"PIPELINES_FILE_SEED={seed}");
        }
        finally
        {
            await rotated.CancelAsync();
            await over.CancelAsync();
            await ((Task)Task.WhenAll(writing, shipping)).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }
    }

    /// <summary>Writes at the given rate until the rotations are done. Returns the number of lines.</summary>
    private async Task<long> WriteAsync(GrowingFile file, bool isCut, CancellationToken rotated)
    {
        Stopwatch time = Stopwatch.StartNew();
        StringBuilder text = new();
        long line = 0;
        while (!rotated.IsCancellationRequested)
        {
            text.Clear();
            for (int i = 0; i < LinesAtOnce; i++, line++)
            {
                text.Append(line.ToString("D12", CultureInfo.InvariantCulture)).Append('.', LineLength - NumberLength - 1).Append('\n');
            }

            if (!isCut && File.Exists(_hangUp))
            {
                file.Reopen();
                File.Delete(_hangUp);
            }

            file.Append(text.ToString());
            double ahead = (line * LineLength / s_bytesPerSecond) - time.Elapsed.TotalSeconds;
            if (ahead > 0.01)
            {
                await Task.Delay(TimeSpan.FromSeconds(ahead), _stop);
            }
        }

        return line;
    }

    /// <summary>Starts the shipper, and kills it, until it has shipped the last line. Returns the number of kills.</summary>
    private async Task<int> ShipAsync(Random random, Task<long> writing, CancellationTokenSource over)
    {
        string command = "exec " + ChildProcess.Command("shipbatches", _log, _output, $"{LineLength}");
        for (int kills = 0; ; kills++)
        {
            using Process process = ChildProcess.Start(command);
            try
            {
                if (kills == 0)
                {
                    await Eventually.TrueAsync(() => File.Exists($"{_output}.position"));
                }

                if (writing.IsCompleted)
                {
                    await ShipTheRestAsync(await writing, over.Token);
                    return kills;
                }

                await Task.Delay(random.Next(200, 2000), over.Token);
            }
            finally
            {
                process.Kill();
                await process.WaitForExitAsync(CancellationToken.None);
            }
        }
    }

    /// <summary>Waits for the last line. That nothing comes for so long is the hang that somebody has seen once.</summary>
    private async Task ShipTheRestAsync(long written, CancellationToken over)
    {
        string last = $"-{written - 1};\n";
        Stopwatch idle = Stopwatch.StartNew();
        for (long length = 0; !EndsWith(last);)
        {
            long now = new FileInfo(_output).Length;
            if (now != length)
            {
                (length, idle) = (now, Stopwatch.StartNew());
            }

            if (idle.Elapsed > Eventually.Limit)
            {
                string[] files = [.. new DirectoryInfo(_folder.Path).GetFiles()
                    .Select(static file => file.Exists ? $"{file.Name} {file.Length}" : "")];
                Assert.Fail($"Nothing was shipped for {idle.Elapsed}; {written} lines were written. {string.Join(' ', files)}");
            }

            await Task.Delay(20, over);
        }
    }

    private bool EndsWith(string last)
    {
        using FileStream output = new(_output, FileMode.Open, FileAccess.Read, FileShare.ReadWrite);
        byte[] end = new byte[last.Length];
        output.Position = Math.Max(0, output.Length - end.Length);
        return output.ReadAtLeast(end, end.Length, throwOnEndOfStream: false) == end.Length && Encoding.UTF8.GetString(end) == last;
    }

    /// <summary>Looks at what was shipped. Returns a summary.</summary>
    private string Check(string[] records, long written, bool isCut)
    {
        long next = 0;
        long batch = 0;
        long twice = 0;
        bool isStart = false;
        List<(long First, long End)> missing = [];
        foreach (string record in records)
        {
            if (record is not ['b', .. var runs, ';'])
            {
                isStart |= record == "start";
                continue;
            }

            long begun = -1;
            foreach (string run in runs.Split(' ', StringSplitOptions.RemoveEmptyEntries))
            {
                string[] numbers = run.TrimStart('g').Split('-');
                if (numbers[0] == "t")
                {
                    Assert.True(isCut, $"A torn line after {next}: {record}");
                    continue;
                }

                long first = long.Parse(numbers[0], CultureInfo.InvariantCulture);
                if (isStart && first < next)
                {
                    // The batch that was not saved when the process was killed.
                    Assert.True(first == batch, $"A start at {first}, after batch {batch} to {next}: {record}");
                    twice += next - first;
                }
                else if (first != next)
                {
                    Assert.True(isCut && first > next, $"{first} comes after {next - 1}: {record}");
                    missing.Add((next, first));
                }

                isStart = false;
                begun = begun < 0 ? first : begun;
                next = long.Parse(numbers[1], CultureInfo.InvariantCulture) + 1;
            }

            batch = begun < 0 ? batch : begun;
        }

        Assert.Equal(written, next);
        HashSet<long> kept = missing.Count == 0 ? [] : Kept(missing);
        Assert.True(kept.Count == 0, $"{kept.Count} lines were lost that are in a file, the first is {kept.DefaultIfEmpty().Min()}");
        return $"{twice} lines twice, {missing.Sum(static one => one.End - one.First)} lost by logrotate at {missing.Count} places";
    }

    /// <summary>Those of the missing lines that are in one of the files.</summary>
    private HashSet<long> Kept(List<(long First, long End)> missing)
    {
        HashSet<long> kept = [];
        foreach (string path in Directory.EnumerateFiles(_folder.Path, "log*")
            .Where(static path => !path.EndsWith(".conf", StringComparison.Ordinal)))
        {
            using FileStream stream = File.OpenRead(path);
            using Stream content = path.EndsWith(".gz", StringComparison.Ordinal)
                ? new GZipStream(stream, CompressionMode.Decompress) : stream;
            using StreamReader lines = new(content);
            while (lines.ReadLine() is { } line)
            {
                if (line.Length == LineLength - 1
                    && long.TryParse(line.AsSpan(0, NumberLength), CultureInfo.InvariantCulture, out long number)
                    && missing.Exists(one => number >= one.First && number < one.End))
                {
                    kept.Add(number);
                }
            }
        }

        return kept;
    }
}
