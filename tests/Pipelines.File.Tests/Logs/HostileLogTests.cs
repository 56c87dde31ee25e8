using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelines.Tests;

/// <summary>What programs and administrators do to a log, a folder or a checkpoint file, and what a caller's own code may do.</summary>
public sealed class HostileLogTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    /// <summary>No string is such a name, and no file is there under the name that a link to nothing has.</summary>
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Pattern_NameThatLeadsToNoFile_HoldsUpNoOtherAndIsNoLogThatIsGone(bool isLink)
    {
        ChildProcess.SkipUnlessLinux();
        string log = _folder.File("z.log", "1\n"u8.ToArray());
        string command = isLink ? $"ln -s nowhere '{_folder.Path}/a.log'"
            : $"printf 'never\\n' > \"$(printf '{_folder.Path}/\\351.log')\"";
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
    [InlineData(true)]
    [InlineData(false)]
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

    [Fact]
    public async Task Log_DeletedAndMadeAgainAtOnce_EachFileIsRead()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "A file that is open keeps its name there.");
        string path = _folder.File("log", "0\n"u8.ToArray());
        await using FollowedLog lines = new(path);
        await lines.ExpectAsync("0");
        for (int i = 1; i <= 20; i++)
        {
            File.Delete(path);
            File.WriteAllText(path, $"{i % 2}\n");
            await lines.ExpectAsync($"{i % 2}");
        }
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
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

    /// <summary>The clock of the system was set back between any two rotations, so the times of the files say nothing.</summary>
    [Fact]
    public async Task Clock_SetBackAtEachRotation_NumbersHaveTheOrder()
    {
        string path = _folder.File("log", "0\n1\n"u8.ToArray());
        FileCheckpoint checkpoint;
        await using (FollowedLog lines = new(path))
        {
            await lines.ExpectAsync("0");
            checkpoint = lines.Current.Checkpoint;
        }

        for (int i = 2; i <= 6; i++)
        {
            for (int number = i - 2; number > 0; number--)
            {
                File.Move($"{path}.{number}", $"{path}.{number + 1}");
            }

            File.SetLastWriteTimeUtc(path, DateTime.UtcNow.AddDays(-i));
            File.Move(path, $"{path}.1");
            File.WriteAllText(path, $"{i}\n");
        }

        await using FollowedLog after = new(path, FollowedLog.From(checkpoint));
        await after.ExpectAsync("1", "2", "3", "4", "5", "6");
        await after.ExpectNothingAsync();
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
    [InlineData(false)]
    [InlineData(true)]
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
}
