using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>Callers and folders that do what nobody expects.</summary>
public sealed class LogFollowerRudeTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task ReadLinesAsync_TwiceAtOnce_EachHasEveryLine()
    {
        using GrowingFile file = new(_folder.File("log"), "1\n");
        LogFollower follower = new(file.Path, FollowedLog.Quick);
        await using IAsyncEnumerator<FollowedLine> one = follower.ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await using IAsyncEnumerator<FollowedLine> other = follower.ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await ExpectAsync(one, "1");
        file.Append("2\n");
        await ExpectAsync(one, "2");
        await ExpectAsync(other, "1");
        await one.DisposeAsync();
        file.Append("3\n");
        await ExpectAsync(other, "2");
        await ExpectAsync(other, "3");
    }

    [Fact]
    public async Task Path_IsTheRoot_ThrowsAsForAFolder()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "It waits five seconds there.");
        await using FollowedLog log = new("/");
        await Assert.ThrowsAsync<UnauthorizedAccessException>(log.NextAsync);
    }

    [Fact]
    public async Task ReadBatchesAsync_CanceledOrLeftAtAnyMoment_LeavesNothingOpen()
    {
        Random random = new(FuzzTime.Seed);
        using GrowingFile file = new(_folder.File("log"));
        LogFollower follower = new(_folder.File("*"), FollowedLog.Quick);
        for (int i = 0; i < 100; i++)
        {
            file.Append("line\n");
            using CancellationTokenSource ended = CancellationTokenSource.CreateLinkedTokenSource(_stop);
            ended.CancelAfter(random.Next(20));
            int most = random.Next(50);
            try
            {
                await foreach (FollowedBatch batch in follower.ReadBatchesAsync(10, 1000, TimeSpan.FromMilliseconds(1), ended.Token))
                {
                    if (most-- == 0)
                    {
                        break;
                    }
                }
            }
            catch (OperationCanceledException) when (!_stop.IsCancellationRequested)
            {
                // As asked.
            }

            Assert.Equal(0, follower.GetStatistics().Files);
        }
    }

    [Fact]
    public async Task Pattern_FolderVanishesAndComesBack_ItsLogsAreRead()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "A folder with an open file cannot be deleted there.");
        string folder = Directory.CreateDirectory(_folder.File("logs")).FullName;
        string log = Path.Combine(folder, "a.log");
        File.WriteAllText(log, "1\n");
        await using IAsyncEnumerator<FollowedLine> lines = new LogFollower(Path.Combine(folder, "*.log"), FollowedLog.Quick)
            .ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await ExpectAsync(lines, "1");
        Directory.Delete(folder, recursive: true);
        await Task.Delay(100, _stop);
        Directory.CreateDirectory(folder);
        File.WriteAllText(log, "2\n");
        await ExpectAsync(lines, "2");
    }

    /// <summary>
    /// As the folder of a volume is that is mounted after the program has started. A rotated file is no log of its own, though the pattern
    /// matches it.
    /// </summary>
    [Theory]
    [InlineData("a.log", "*.log", false)]
    [InlineData("log", "log*", false)]
    [InlineData("log", "log*", true)]
    public async Task Pattern_FolderIsMissingAtFirst_BeginsAtTheCheckpoints(string name, string pattern, bool isRotated)
    {
        string folder = Directory.CreateDirectory(_folder.File("logs")).FullName;
        string log = Path.Combine(folder, name);
        File.WriteAllText(log, "1\n2\n");
        string other = _folder.File("other", "other\n"u8.ToArray());
        Dictionary<string, FileCheckpoint> checkpoints = new() { [log] = await FirstCheckpointAsync(log) };
        if (isRotated)
        {
            File.Move(log, log + ".1");
        }

        Directory.Move(folder, _folder.File("away"));
        await using IAsyncEnumerator<FollowedLine> lines = new LogFollower(
            [other, Path.Combine(folder, pattern)], FollowedLog.Quick with { Checkpoints = checkpoints })
            .ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await ExpectAsync(lines, "other");
        Directory.Move(_folder.File("away"), folder);
        await ExpectAsync(lines, "2");
    }

    /// <summary>Its checkpoint is that of a file before, and the new one may begin with the same lines.</summary>
    [Fact]
    public async Task Pattern_LogIsReadAndDeletedAndComesAgain_TheNewOneIsReadFromItsBeginning()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "A file that is open cannot be deleted there.");
        string log = _folder.File("a.log", "1\n2\n"u8.ToArray());
        LogFollower follower = new(_folder.File("*.log"), FollowedLog.Quick with
        {
            Checkpoints = new Dictionary<string, FileCheckpoint> { [log] = await FirstCheckpointAsync(log) },
        });
        await using IAsyncEnumerator<FollowedLine> lines = follower.ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await ExpectAsync(lines, "2");
        Task<bool> step = lines.MoveNextAsync().AsTask();
        File.Delete(log);
        await Eventually.TrueAsync(() => follower.GetStatistics().Files == 0);

        // The search that finds the other one has found that the log is gone.
        await File.WriteAllTextAsync(_folder.File("b.log"), "b\n", _stop);
        Assert.True(await GrowingFile.Bounded(step));
        await File.WriteAllTextAsync(log, "1\n3\n", _stop);
        await ExpectAsync(lines, "1", "3");
    }

    [Fact]
    public async Task Paths_TwoPatternsInOneFolder_TheLogsOfBothAreRead()
    {
        _folder.File("1.log", "1\n"u8.ToArray());
        _folder.File("2.txt", "2\n"u8.ToArray());
        await using IAsyncEnumerator<FollowedLine> lines = new LogFollower(
            [_folder.File("*.log"), _folder.File("*.txt")], FollowedLog.Quick).ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        List<string> first = [await NextAsync(lines), await NextAsync(lines)];
        Assert.Equal(["1", "2"], first.Order(StringComparer.Ordinal));
        _folder.File("3.txt", "3\n"u8.ToArray());
        await ExpectAsync(lines, "3");
    }

    [Fact]
    public async Task ReadLinesAsync_LastWriteIsInAYearThatNoDateHas_IsRead()
    {
        ChildProcess.SkipUnlessLinux("touch");
        Assert.SkipUnless(Directory.Exists("/dev/shm"), "There is no tmpfs, which has such times.");
        string log = Path.Combine("/dev/shm", Path.GetRandomFileName());
        try
        {
            await File.WriteAllTextAsync(log, "1\n", _stop);
            await File.WriteAllTextAsync(log + ".1", "0\n", _stop);
            Assert.Equal(0, (await ChildProcess.RunAsync($"touch -d @1099511627776 '{log}' '{log}.1'")).ExitCode);
            await using FollowedLog lines = new(log);
            await lines.ExpectAsync("1");
            await File.AppendAllTextAsync(log, "2\n", _stop);
            await lines.ExpectAsync("2");
        }
        finally
        {
            File.Delete(log);
            File.Delete(log + ".1");
        }
    }

    [Fact]
    public async Task Path_ALinkThatIsTurnedToAnotherFile_BothAreRead()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Links need a privilege there.");
        string link = _folder.File("current.log");
        using GrowingFile first = new(_folder.File("first"), "1\n");
        using GrowingFile second = new(_folder.File("second"), "3\n");
        File.CreateSymbolicLink(link, first.Path);
        await using FollowedLog lines = new(link);
        await lines.ExpectAsync("1");
        File.CreateSymbolicLink(link + ".new", second.Path);
        first.Append("2\n");
        File.Move(link + ".new", link, overwrite: true);
        await lines.ExpectAsync("2", "3");
        second.Append("4\n");
        await lines.ExpectAsync("4");
    }

    [Theory]
    [InlineData("a\nb.log")]
    [InlineData(" %0A @#2: .log")]
    [InlineData("\u00e4\u2028.log")]
    public async Task Checkpoints_OfALogWithAStrangeName_GoOn(string name)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Such names cannot be there.");
        using GrowingFile file = new(_folder.File(name), "1\n");
        for (int i = 1; i <= 3; i++)
        {
            CheckpointFile position = await CheckpointFile.OpenAsync(_folder.File("position"), cancellationToken: _stop);
            LogFollower follower = new(_folder.File("*.log"), FollowedLog.Quick with { Checkpoints = position.Checkpoints });
            await foreach (FollowedBatch batch in follower.ReadBatchesAsync(1, 1000, TimeSpan.Zero, _stop))
            {
                Assert.Equal((file.Path, $"{i}"), (batch.Path, batch.Lines[0].ToString()));
                await position.SaveAsync(batch, _stop);
                break;
            }

            file.Append($"{i + 1}\n");
        }
    }

    [Fact]
    public async Task Pattern_ALogThatIsAFolderOrALinkToNothing_HoldsUpNoOther()
    {
        ChildProcess.SkipUnlessLinux();
        Directory.CreateDirectory(_folder.File("folder.log"));
        File.CreateSymbolicLink(_folder.File("nothing.log"), _folder.File("nowhere"));
        File.CreateSymbolicLink(_folder.File("itself.log"), _folder.File("itself.log"));
        File.WriteAllText(_folder.File("z.log"), "1\n");
        await using IAsyncEnumerator<FollowedLine> lines = new LogFollower(
            _folder.File("*.log"), FollowedLog.Quick with { OnUnreadable = static (_, _) => { } })
            .ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await ExpectAsync(lines, "1");
    }

    private static async Task ExpectAsync(IAsyncEnumerator<FollowedLine> lines, params string[] expected)
    {
        foreach (string line in expected)
        {
            Assert.Equal(line, await NextAsync(lines));
        }
    }

    /// <summary>The checkpoint after the first line of a log.</summary>
    private static async Task<FileCheckpoint> FirstCheckpointAsync(string log)
    {
        await using FollowedLog lines = new(log);
        return (await lines.NextAsync()).Checkpoint;
    }

    private static async Task<string> NextAsync(IAsyncEnumerator<FollowedLine> lines)
    {
        Assert.True(await GrowingFile.Bounded(lines.MoveNextAsync()));
        return lines.Current.ToString();
    }
}
