namespace FilePipelines.Tests;

/// <summary>
/// A log that is rotated in every way while its follower is ended at random moments and goes on from its checkpoint: one after another, for
/// two seconds, or PIPELINES_FILE_STRESS_SECONDS. PIPELINES_FILE_SEED repeats a run.
/// </summary>
[Collection("whole process")]
[Trait("Category", StressTime.Category)]
public sealed class LogFollowerStressTests : IDisposable
{
    /// <summary>
    /// How often one log is rotated, at about the most: each look opens every rotated file, which takes 1 to 2 ms a file under Wine.
    /// </summary>
    private const int MaxRotations = 20;

    private readonly TempFolder _folder = new();
    private readonly CancellationTokenSource _over = CancellationTokenSource.CreateLinkedTokenSource(TestContext.Current.CancellationToken);
    private readonly CancellationToken _stop;
    private string _log = "";
    private int _rotations;

    public LogFollowerStressTests() => _stop = _over.Token;

    public void Dispose()
    {
        _over.Cancel();
        _over.Dispose();
        _folder.Dispose();
    }

    [Fact]
    public async Task ReadLinesAsync_EndedAtRandomMomentsAndGoneOnWith_GivesEveryLineOnceAndInOrder()
    {
        Assert.SkipWhen(
            OperatingSystem.IsWindows(),
            "Identities have no time of creation there: an old file that a listing misses while it is renamed is read again "
            + "(docs/windows.md).");
        Stopwatch time = Stopwatch.StartNew();
        int seed = FuzzTime.Seed;
        do
        {
            _rotations = 0;
            _log = Path.Combine(Directory.CreateDirectory(_folder.File($"{seed}")).FullName, "log");
            await StressTime.BoundedAsync(Task.Run(() => EndAtRandomMomentsAsync(seed), _stop), $"PIPELINES_FILE_SEED={seed}");
            seed++;
        }
        while (time.Elapsed.TotalSeconds < StressTime.Seconds);
    }

    private async Task EndAtRandomMomentsAsync(int seed)
    {
        Random random = new(seed);

        // The first file, before the writer has rotated it.
        File.WriteAllBytes(_log, []);
        Assert.True(FileIdentity.TryGet(_log, out FileIdentity identity));
        FileCheckpoint checkpoint = new(identity, 0);
        Task<int> writing = Task.Run(() => WriteAsync(new Random(seed + 1)), _stop);
        int expected = 0;
        int starts = 0;

        // Starts that gave no line, one after the other: each may take twice as long. On a busy machine, and under Wine, looking at the
        // rotated files may take longer than a follower's life.
        int fruitless = 0;
        while (!writing.IsCompleted || expected < await writing)
        {
            starts++;
            using CancellationTokenSource ended = CancellationTokenSource.CreateLinkedTokenSource(_stop);
            int most = random.Next(5000);
            int before = expected;
            ended.CancelAfter(random.Next(20, 500) << fruitless);
            try
            {
                await foreach (FollowedLine line in new LogFollower(_log, FollowedLog.From(checkpoint)).ReadLinesAsync(ended.Token))
                {
                    Assert.True(line.ToString() == $"line {expected}", $"'{line}' instead of line {expected}, after {starts} starts and "
                        + $"{_rotations} rotations (PIPELINES_FILE_SEED={seed})");
                    Assert.True(line.HasLineEnd);
                    Assert.False(line.IsAfterGap);
                    expected++;
                    checkpoint = line.Checkpoint;
                    if (most-- == 0 || (writing.IsCompleted && expected == await writing))
                    {
                        break;
                    }
                }
            }
            catch (OperationCanceledException) when (!_stop.IsCancellationRequested)
            {
                // As a program that ends.
            }

            fruitless = expected > before ? 0 : Math.Min(fruitless + 1, 6);
        }

        Assert.Equal(await writing, expected);
        TestContext.Current.SendDiagnosticMessage($"{expected} lines, {starts} starts, {_rotations} rotations");
    }

    /// <summary>
    /// Appends lines, whole and in halves, and rotates the log as logrotate does, several times at once too. How many lines there are.
    /// </summary>
    private async Task<int> WriteAsync(Random random)
    {
        Stopwatch time = Stopwatch.StartNew();
        using GrowingFile file = new(_log);
        int line = 0;
        while (time.Elapsed.TotalSeconds < StressTime.Seconds && _rotations < MaxRotations && !_stop.IsCancellationRequested)
        {
            for (int i = random.Next(300); i > 0; i--)
            {
                string text = string.Create(CultureInfo.InvariantCulture, $"line {line++}{(line % 3 == 0 ? "\r\n" : "\n")}");
                int cut = random.Next(8) == 0 ? random.Next(text.Length) : 0;
                file.Append(text[..cut]);
                file.Append(text[cut..]);
            }

            if (random.Next(3) == 0)
            {
                await Task.Delay(random.Next(30), _stop);
            }

            if (random.Next(5) == 0)
            {
                await RotateAsync(file, random);
            }
        }

        return line;
    }

    private async Task RotateAsync(GrowingFile file, Random random)
    {
        for (int i = random.Next(4); i >= 0; i--)
        {
            _rotations++;
            for (int number = _rotations - 1; number > 0; number--)
            {
                File.Move($"{_log}.{number}", $"{_log}.{number + 1}");
            }

            File.Move(_log, _log + ".1");
            if (random.Next(3) == 0)
            {
                // Nothing has the name for a while.
                await Task.Delay(random.Next(20), _stop);
            }

            file.Reopen();

            // Files are told apart by the clock's ticks; nobody rotates faster.
            await Task.Delay(random.Next(5, 10), _stop);
        }
    }
}
