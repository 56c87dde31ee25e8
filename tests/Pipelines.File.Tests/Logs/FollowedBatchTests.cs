namespace FilePipelines.Tests;

/// <summary>What LogFollower.ReadBatchesAsync puts together, of one log and of many.</summary>
public sealed class FollowedBatchTests : FileTests
{
    private static readonly TimeSpan s_day = TimeSpan.FromDays(1);

    [Theory]
    [InlineData(3, 1000, "1 22 333|4444 5 6|7")]
    [InlineData(100, 8, "1 22|333|4444 5|6 7")]
    [InlineData(100, 1, "1|22|333|4444|5|6|7")]
    public async Task ReadBatchesAsync_MuchIsThere_EachIsFullAndHasItsCheckpoint(int maxLines, int maxBytes, string expected)
    {
        string log = _folder.File("log", "1\n22\r\n333\n4444\n5\n6\n7\n"u8.ToArray());
        List<string> batches = [];
        List<FileCheckpoint> checkpoints = [];
        LogFollowerOptions options = FollowedLog.Quick with { IdleTimeout = TimeSpan.FromMilliseconds(200) };
        await foreach (FollowedBatch batch in new LogFollower(log, options).ReadBatchesAsync(maxLines, maxBytes, TimeSpan.Zero, _stop))
        {
            Assert.Equal(log, batch.Path);
            Assert.Equal(batch.Lines[^1].Checkpoint, batch.Checkpoint);
            batches.Add(string.Join(' ', batch.Lines));
            checkpoints.Add(batch.Checkpoint);
        }

        Assert.Equal(expected, string.Join('|', batches));
        for (int i = 0; i < batches.Count - 1; i++)
        {
            await using FollowedLog rest = new(log, FollowedLog.From(checkpoints[i]));
            await rest.ExpectAsync([.. batches.Skip(i + 1).SelectMany(static batch => batch.Split(' '))]);
        }
    }

    [Fact]
    public async Task MaxDelay_LittleIsThere_WaitsForMoreAndNotForEver()
    {
        using GrowingFile file = new(_folder.File("log"), "1\n");
        await using IAsyncEnumerator<FollowedBatch> full = new LogFollower(file.Path, FollowedLog.Quick)
            .ReadBatchesAsync(2, 1000, s_day, _stop).GetAsyncEnumerator(_stop);
        await using IAsyncEnumerator<FollowedBatch> late = new LogFollower(file.Path, FollowedLog.Quick)
            .ReadBatchesAsync(100, 1000, TimeSpan.FromMilliseconds(300), _stop).GetAsyncEnumerator(_stop);
        Task<bool> whenFull = full.MoveNextAsync().AsTask();
        Task<bool> whenLate = late.MoveNextAsync().AsTask();
        Assert.True(await GrowingFile.Bounded(whenLate));
        Assert.Equal("1", string.Join(' ', late.Current.Lines));
        Assert.False(whenFull.IsCompleted);
        file.Append("2\n3\n");
        Assert.True(await GrowingFile.Bounded(whenFull));
        Assert.Equal("1 2", string.Join(' ', full.Current.Lines));
    }

    [Fact]
    public async Task MaxLines_TornLineInTwoPieces_TheyAreTwoBatches()
    {
        using GrowingFile file = new(_folder.File("log"), "123\r");
        await using IAsyncEnumerator<FollowedBatch> batches = new LogFollower(file.Path, FollowedLog.Quick with { MaxLineLength = 3 })
            .ReadBatchesAsync(1, 1000, TimeSpan.Zero, _stop).GetAsyncEnumerator(_stop);
        Task<bool> first = batches.MoveNextAsync().AsTask();
        File.Move(file.Path, file.Path + ".1");
        file.Reopen();
        file.Append("4\n");
        Assert.True(await GrowingFile.Bounded(first));
        Assert.Equal("123", Assert.Single(batches.Current.Lines).ToString());
        Assert.True(await GrowingFile.Bounded(batches.MoveNextAsync()));
        Assert.Equal("\r", Assert.Single(batches.Current.Lines).ToString());
        Assert.True(await GrowingFile.Bounded(batches.MoveNextAsync()));
        Assert.Equal("4", Assert.Single(batches.Current.Lines).ToString());
    }

    [Fact]
    public async Task MaxDelay_FileIsOver_ItsLinesDoNotWait()
    {
        using GrowingFile file = new(_folder.File("log"), "1\n");
        await using IAsyncEnumerator<FollowedBatch> batches = new LogFollower(file.Path, FollowedLog.Quick)
            .ReadBatchesAsync(2, 1000, Timeout.InfiniteTimeSpan, _stop).GetAsyncEnumerator(_stop);
        Task<bool> first = batches.MoveNextAsync().AsTask();
        File.Move(file.Path, file.Path + ".1");
        file.Reopen();
        file.Append("2\n3\n");
        Assert.True(await GrowingFile.Bounded(first));
        Assert.Equal("1", string.Join(' ', batches.Current.Lines));
        Assert.True(await GrowingFile.Bounded(batches.MoveNextAsync()));
        Assert.Equal("2 3", string.Join(' ', batches.Current.Lines));
    }

    [Fact]
    public async Task ReadBatchesAsync_OneLogGrowsFast_TheOthersTakeTurns()
    {
        const int Grown = 100_000;
        using GrowingFile fast = new(_folder.File("fast.log"), new string('\n', Grown));
        for (int i = 0; i < 5; i++)
        {
            _folder.File($"slow{i}.log", "one\n"u8.ToArray());
        }

        // The fast log never ends, so a log that gets no turn is never seen.
        using CancellationTokenSource ended = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        ended.CancelAfter(Eventually.Limit);
        HashSet<string> seen = [];
        int left = Grown;
        await foreach (FollowedBatch batch in new LogFollower(_folder.File("*.log"), FollowedLog.Quick)
            .ReadBatchesAsync(10, 1000, TimeSpan.Zero, ended.Token))
        {
            left -= batch.Path == fast.Path ? batch.Lines.Count : 0;
            if (left < Grown / 2)
            {
                fast.Append(new string('\n', Grown));
                left += Grown;
            }

            if (seen.Add(batch.Path) && seen.Count == 6)
            {
                break;
            }
        }

        Assert.Equal(6, seen.Count);
    }

    [Fact]
    public async Task Pattern_LogsThatComeGoAndAreRotated_EachLineOnceWithThePathOfItsLog()
    {
        _folder.File("a.log", "a1\n"u8.ToArray());
        _folder.File("a.log.1", "old\n"u8.ToArray());
        _folder.File("b.txt", "no\n"u8.ToArray());
        await using IAsyncEnumerator<FollowedLine> lines = new LogFollower(_folder.File("*.lo?*"), FollowedLog.Quick)
            .ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await ExpectAsync(lines, "a.log", "a1");
        _folder.File("c.log", "c1\n"u8.ToArray());
        await ExpectAsync(lines, "c.log", "c1");
        File.Move(_folder.File("a.log"), _folder.File("a.log.2"));
        GrowingFile.Delete(_folder.File("c.log"));
        _folder.File("a.log", "a2\n"u8.ToArray());
        await ExpectAsync(lines, "a.log", "a2");
        await Task.Delay(1000, _stop);
        _folder.File("c.log", "c2\n"u8.ToArray());
        await ExpectAsync(lines, "c.log", "c2");
    }

    [Fact]
    public async Task Pattern_FolderIsListedWhileALogHasNoFile_ItsRotatedFilesAreNoLogs()
    {
        _folder.File("a.log", "a1\n"u8.ToArray());
        _folder.File("a.log.1", "old\n"u8.ToArray());
        await using IAsyncEnumerator<FollowedLine> lines = new LogFollower(_folder.File("*.lo?*"), FollowedLog.Quick)
            .ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await ExpectAsync(lines, "a.log", "a1");
        File.Move(_folder.File("a.log"), _folder.File("a.log.2"));
        _folder.File("b.log", "b1\n"u8.ToArray());
        await ExpectAsync(lines, "b.log", "b1");
        _folder.File("a.log", "a2\n"u8.ToArray());
        await ExpectAsync(lines, "a.log", "a2");
    }

    [Fact]
    public async Task Checkpoints_OfManyLogs_EachGoesOnWhereItWas()
    {
        string position = _folder.File("position");
        for (int i = 0; i < 20; i++)
        {
            _folder.File($"{i}.log", "1\n2\n"u8.ToArray());
        }

        for (int round = 1; round <= 4; round++)
        {
            CheckpointFile checkpoints = await CheckpointFile.OpenAsync(position, cancellationToken: _stop);
            LogFollower follower = new(_folder.File("*.log"), FollowedLog.Quick with { Checkpoints = checkpoints.Checkpoints });
            HashSet<string> seen = [];
            await foreach (FollowedBatch batch in follower.ReadBatchesAsync(1, 1000, TimeSpan.Zero, _stop))
            {
                if (seen.Add(batch.Path))
                {
                    Assert.Equal($"{round}", batch.Lines[0].ToString());
                    await checkpoints.SaveAsync(batch, _stop);
                }

                if (seen.Count == 20)
                {
                    break;
                }
            }

            for (int i = 0; i < 20 && round == 2; i++)
            {
                File.Move(_folder.File($"{i}.log"), _folder.File($"{i}.log.1"));
                _folder.File($"{i}.log", "3\n4\n"u8.ToArray());
            }
        }
    }

    [Fact]
    public async Task IdleTimeout_NothingComes_EndsTheLoop()
    {
        using GrowingFile file = new(_folder.File("log"), "1\n");
        LogFollowerOptions options = FollowedLog.Quick with { IdleTimeout = TimeSpan.FromMilliseconds(100) };
        int lines = 0;
        await foreach (FollowedLine line in new LogFollower(file.Path, options).ReadLinesAsync(_stop))
        {
            lines++;
            Assert.True(lines < 3);
            file.Append(lines == 1 ? "2\n" : "half");
        }

        Assert.Equal(2, lines);
    }

    [Fact]
    public async Task GetStatistics_WhileItFollows_SaysWhatHappened()
    {
        using GrowingFile file = new(_folder.File("log"), "1\n");
        LogFollower follower = new(file.Path, FollowedLog.Quick);
        Assert.Equal(default, follower.GetStatistics());
        await using IAsyncEnumerator<FollowedLine> lines = follower.ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await ExpectAsync(lines, "log", "1");
        Assert.Equal((1, 1, 0, 0), Of(follower));
        file.Append("12345\n");
        await Eventually.TrueAsync(() => follower.GetStatistics().BytesBehind >= 6);
        await ExpectAsync(lines, "log", "12345");
        File.Move(file.Path, file.Path + ".1");
        file.Reopen();
        file.Append("3\n");
        await ExpectAsync(lines, "log", "3");
        Assert.Equal((1, 3, 1, 0), Of(follower));
        file.Cut(0);
        file.Append("\n");
        await ExpectAsync(lines, "log", "");
        Assert.Equal((1, 4, 1, 1), Of(follower));
        await lines.DisposeAsync();
        Assert.Equal(0, follower.GetStatistics().Files);
    }

    [Fact]
    public async Task OnUnreadable_IsSet_TheOtherLogsAreRead()
    {
        ChildProcess.SkipUnlessLinux();
        _folder.File("a.log", "a\n"u8.ToArray());
        Assert.True((await ChildProcess.RunAsync($"mkfifo '{_folder.File("b.log")}'")).ExitCode == 0);
        List<string> unreadable = [];
        LogFollowerOptions options = FollowedLog.Quick with
        {
            OnUnreadable = (path, error) => unreadable.Add($"{path} {error.GetType().Name}"),
        };
        await using IAsyncEnumerator<FollowedLine> lines = new LogFollower(_folder.File("*.log"), options)
            .ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await ExpectAsync(lines, "a.log", "a");
        Assert.Equal(_folder.File("b.log") + " NotSupportedException", unreadable[0]);
        await using IAsyncEnumerator<FollowedLine> strict = new LogFollower(_folder.File("*.log"))
            .ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        await Assert.ThrowsAsync<NotSupportedException>(async () => await strict.MoveNextAsync());
    }

    [Fact]
    public void ReadBatchesAsync_ArgumentsThatCannotBe_ThrowAtOnce()
    {
        LogFollower follower = new(_folder.File("log"));
        Assert.Throws<ArgumentOutOfRangeException>("maxLines", () => follower.ReadBatchesAsync(0, 1, TimeSpan.Zero, _stop));
        Assert.Throws<ArgumentOutOfRangeException>("maxBytes", () => follower.ReadBatchesAsync(1, 0, TimeSpan.Zero, _stop));
        Assert.Throws<ArgumentOutOfRangeException>("maxDelay", () => follower.ReadBatchesAsync(1, 1, TimeSpan.FromTicks(-2), _stop));
        LogFollowerOptions options = FollowedLog.From(new FileCheckpoint(default, 1));
        Assert.Throws<ArgumentException>("options", () => new LogFollower(_folder.File("*.log"), options));
        Assert.Throws<ArgumentException>("options", () => new LogFollower([_folder.File("a"), _folder.File("b")], options));
        Assert.Throws<ArgumentOutOfRangeException>("paths", () => new LogFollower([]));
    }

    private async Task ExpectAsync(IAsyncEnumerator<FollowedLine> lines, string name, string line)
    {
        Assert.True(await GrowingFile.Bounded(lines.MoveNextAsync()));
        Assert.Equal((_folder.File(name), line), (lines.Current.Path, lines.Current.ToString()));
    }

    private static (long Files, long Lines, long Rotations, long Gaps) Of(LogFollower follower)
    {
        LogFollowerStatistics now = follower.GetStatistics();
        return (now.Files, now.Lines, now.Rotations, now.Gaps);
    }
}
