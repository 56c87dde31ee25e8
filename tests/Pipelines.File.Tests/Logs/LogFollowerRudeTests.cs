namespace FilePipelines.Tests;

/// <summary>What callers, programs and administrators do to a follower, a log, a folder or a checkpoint file that nobody expects.</summary>
public sealed class LogFollowerRudeTests : FileTests
{
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

    /// <summary>No string is such a name, and no file is there under the name that a link to nothing has.</summary>
    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task Pattern_NameThatLeadsToNoFile_HoldsUpNoOtherAndIsNoLogThatIsGone(bool isLink)
    {
        ChildProcess.SkipUnlessLinux();
        string log = _folder.File("z.log", "1\n"u8.ToArray());
        string command = isLink ? $"ln -s nowhere '{_folder.Path}/a.log'" : $"printf 'never\\n' > \"$(printf '{_folder.Path}/\\351.log')\"";
        Assert.Equal(0, (await ChildProcess.RunAsync(command)).ExitCode);
        Assert.Equal(2, Directory.GetFileSystemEntries(_folder.Path).Length);
        await foreach (FollowedBatch batch in new LogFollower(_folder.File("*.log"), FollowedLog.Quick)
            .ReadBatchesAsync(10, 1000, TimeSpan.Zero, _stop))
        {
            Assert.Equal((log, "1"), (batch.Path, batch.Lines[0].ToString()));
            Assert.Empty(batch.GoneLogs);
            break;
        }

        Assert.Equal(0, (await ChildProcess.RunAsync($"rm '{_folder.Path}/'*")).ExitCode);
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task OnUnreadable_Throws_TheLoopThrowsThatAndNothingIsLeftOpen(bool isAtStart)
    {
        ChildProcess.SkipUnlessLinux("mkfifo");
        _folder.File("a.log", "1\n"u8.ToArray());
        InvalidTimeZoneException error = new();
        LogFollower follower = new(_folder.File("*.log"), FollowedLog.Quick with { OnUnreadable = (_, _) => throw error });
        await using IAsyncEnumerator<FollowedLine> lines = follower.ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        if (!isAtStart)
        {
            Assert.True(await GrowingFile.Bounded(lines.MoveNextAsync()));
        }

        Assert.Equal(0, (await ChildProcess.RunAsync($"mkfifo '{_folder.File("fifo.log")}'")).ExitCode);
        Assert.Same(error, await Assert.ThrowsAsync<InvalidTimeZoneException>(() => GrowingFile.Bounded(lines.MoveNextAsync())));
        Assert.Equal(0, follower.GetStatistics().Files);
    }

    /// <summary>What was cut had not been read. What somebody puts beside the log after that is a stranger all the same.</summary>
    [Fact]
    public async Task Cut_BehindWhatWasRead_AFileThatAppearsAfterwardsIsAStranger()
    {
        const int Many = 20_000;
        using GrowingFile file = new(_folder.File("log"), string.Concat(Enumerable.Range(1, Many).Select(static i => $"{i,99}\n")));
        await using FollowedLog lines = new(_folder.File("log*"));
        await lines.ExpectAsync($"{1,99}");
        file.Cut(Many / 2 * 100);
        file.Append($"{"after the cut",99}\n");

        // When it has opened another log, it has seen what came before, too.
        await SeenAsync("logs1");
        for (int i = 2; i <= Many / 2; i++)
        {
            await lines.ExpectAsync($"{i,99}");
        }

        await lines.ExpectAsync($"{"after the cut",99}");
        _folder.File("log.5", "stranger\n"u8.ToArray());
        await SeenAsync("logs2");
        File.Move(file.Path, file.Path + ".1");
        file.Reopen();
        file.Append("next\n");
        await lines.ExpectAsync("next");
        await lines.ExpectNothingAsync();

        async Task SeenAsync(string name)
        {
            long files = lines.Statistics.Files;
            _folder.File(name, []);
            await Eventually.TrueAsync(() => lines.Statistics.Files > files);
        }
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Folder_ReplacedAgainAndAgain_TheLogInEachIsRead(bool isLink)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "A folder with an open file keeps its name there, and links need a privilege.");
        string folder = _folder.File("logs");
        Make(0);
        await using FollowedLog lines = new(Path.Combine(folder, "*.log"));
        await lines.ExpectAsync("0");
        for (int i = 1; i <= 10; i++)
        {
            Make(i);
            await lines.ExpectAsync($"{i}");
        }

        void Make(int number)
        {
            string made = Directory.CreateDirectory(_folder.File($"made{number}")).FullName;
            File.WriteAllText(Path.Combine(made, "a.log"), $"{number}\n");
            if (isLink)
            {
                File.CreateSymbolicLink(folder + ".new", made);
                Assert.Equal(0, UnixCalls.Default.Rename(UnixName.Of(folder + ".new"), UnixName.Of(folder)));
                return;
            }

            if (number > 0)
            {
                Directory.Move(folder, _folder.File($"old{number}"));
            }

            Directory.Move(made, folder);
        }
    }

    /// <summary>The last one that saves has its checkpoints in the file. That is no way to work, but the file is whole.</summary>
    [Fact]
    public async Task CheckpointFile_SavedByTwoAtOnce_IsThatOfOneOfThem()
    {
        string path = _folder.File("position");
        CheckpointFile[] files = [await CheckpointFile.OpenAsync(path, cancellationToken: _stop),
            await CheckpointFile.OpenAsync(path, cancellationToken: _stop)];
        for (int i = 0; i < 100; i++)
        {
            files[0].Set($"/a/{i}", FileCheckpoint.Parse("fe00000000:c12b8d:18ea2afc0e806c22@13", null));
            files[1].Set($"/b/{i}", FileCheckpoint.Parse("fe00000000:c12b8d:18ea2afc0e806c22@14", null));
            await Task.WhenAll(files.Select(file => Task.Run(() => file.SaveAsync(_stop), _stop)));
            CheckpointFile again = await CheckpointFile.OpenAsync(path, cancellationToken: _stop);
            Assert.Contains(files, file => file.Checkpoints.ToHashSet().SetEquals(again.Checkpoints));
        }

        Assert.Equal([path], Directory.GetFileSystemEntries(_folder.Path));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task CheckpointFile_OnAFullDisk_KeepsTheOldOnesAndSavesWhenThereIsRoom(bool isDurable)
    {
        ChildProcess.SkipUnlessLinux();
        string disk = Directory.CreateDirectory(_folder.File("disk")).FullName;
        (int status, _, string told) = await ChildProcess.RunAsync($"mount -t tmpfs -o size=64k none '{disk}'");
        Assert.SkipUnless(status == 0, told);
        try
        {
            string path = Path.Combine(disk, "position");
            CheckpointFile position = await CheckpointFile.OpenAsync(path, isDurable, _stop);
            FileCheckpoint first = FileCheckpoint.Parse("fe00000000:c12b8d:18ea2afc0e806c22@13", null);
            position.Set("/log", first);
            await position.SaveAsync(_stop);
            string ballast = Path.Combine(disk, "ballast");
            Assert.NotEqual(0, (await ChildProcess.RunAsync($"dd if=/dev/zero of='{ballast}' bs=4k 2>/dev/null")).ExitCode);
            position.Set("/log", first with { Offset = 14 });
            IOException error = await Assert.ThrowsAsync<IOException>(() => position.SaveAsync(_stop));
            Assert.Contains("position", error.Message, StringComparison.Ordinal);
            Assert.Equal(first, (await CheckpointFile.OpenAsync(path, cancellationToken: _stop)).Checkpoints["/log"]);
            Assert.Equal([ballast, path], Directory.GetFileSystemEntries(disk).Order(StringComparer.Ordinal));
            File.Delete(ballast);
            await position.SaveAsync(_stop);
            Assert.Equal(14, (await CheckpointFile.OpenAsync(path, cancellationToken: _stop)).Checkpoints["/log"].Offset);
        }
        finally
        {
            await ChildProcess.RunAsync($"umount '{disk}'");
        }
    }

    [Fact]
    public async Task Checkpoints_OfLogsThatAreGone_AreForgottenWithTheNextBatch()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Wine 8 keeps the name of a deleted file while it is open.");
        string stays = _folder.File("stays.log");
        string goes = _folder.File("goes.log");
        await File.WriteAllTextAsync(goes, "1\n", _stop);
        CheckpointFile position = await CheckpointFile.OpenAsync(_folder.File("position"), cancellationToken: _stop);

        // Of a log that was removed while the program was stopped.
        Assert.True(FileIdentity.TryGet(goes, out FileIdentity identity));
        position.Set(_folder.File("before.log"), new FileCheckpoint(identity, 2));
        LogFollower follower = new(_folder.File("*.log"), FollowedLog.Quick with { Checkpoints = position.Checkpoints });
        await using IAsyncEnumerator<FollowedBatch> batches = follower.ReadBatchesAsync(100, 1000, TimeSpan.Zero, _stop)
            .GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        Assert.Equal(goes, batches.Current.Path);
        await position.SaveAsync(batches.Current, _stop);
        File.Delete(goes);
        await Eventually.TrueAsync(async () =>
        {
            await File.AppendAllTextAsync(stays, "line\n", _stop);
            Assert.True(await batches.MoveNextAsync());
            Assert.Equal(batches.Current.GoneLogs, batches.Current.Copy().GoneLogs);
            await position.SaveAsync(batches.Current, _stop);
            return position.Checkpoints.Keys.SequenceEqual([stays]);
        });

        CheckpointFile saved = await CheckpointFile.OpenAsync(_folder.File("position"), cancellationToken: _stop);
        Assert.Equal([stays], saved.Checkpoints.Keys);
    }

    [Fact]
    public async Task Checkpoint_NoOtherLogIsInItsFolder_WaitsForItsFile()
    {
        // As of a volume that is not mounted yet.
        string log = _folder.File("a.log");
        await File.WriteAllTextAsync(log, "1\n2\n", _stop);
        FileCheckpoint checkpoint;
        await using (FollowedLog lines = new(log))
        {
            await lines.ExpectAsync("1");
            checkpoint = lines.Current.Checkpoint;
        }

        File.Move(log, _folder.File("away"));
        await using FollowedLog after = new(_folder.File("*.log"), FollowedLog.Quick with
        {
            Checkpoints = new Dictionary<string, FileCheckpoint> { [log] = checkpoint },
        });
        await after.ExpectNothingAsync();
        File.Move(_folder.File("away"), log);
        await after.ExpectAsync("2");
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
