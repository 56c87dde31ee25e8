using System.IO.Compression;
using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>
/// Which file comes next where names and times say too little, or something wrong: no line is lost, and none comes twice.
/// </summary>
public sealed class LogSuccessionTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly string _log;

    public LogSuccessionTests()
    {
        _log = _folder.File("log");
        Directory.CreateDirectory(_folder.File("old"));
    }

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task RotatedNames_OnAnotherVolume_NothingComesTwice()
    {
        using GrowingFile file = new(_log, Lines(1, 4));
        await using FollowedLog lines = new(_log, FollowedLog.Quick with { RotatedNames = ["old/{name}.#"] });
        await lines.ExpectAsync("1", "2", "3", "4");
        MoveToAnotherVolume(_log, _folder.File("old/log.1"));
        file.Reopen();
        file.Append(Lines(5, 8));
        await lines.ExpectAsync("5", "6", "7", "8");
        File.Move(_folder.File("old/log.1"), _folder.File("old/log.2"));
        MoveToAnotherVolume(_log, _folder.File("old/log.1"));
        file.Reopen();
        file.Append(Lines(9, 12));
        await lines.ExpectAsync("9", "10", "11", "12");
        await lines.ExpectNothingAsync();
    }

    [Theory]
    [InlineData("")]
    [InlineData("old/{name}.#")]
    public async Task RotatedNames_NoneInTheFolderOfTheLog_TheNextFileIsFoundAllTheSame(string name)
    {
        using GrowingFile file = new(_log, Lines(1, 2));
        await using FollowedLog lines = new(_log, FollowedLog.Quick with { RotatedNames = name.Length == 0 ? [] : [name] });
        await lines.ExpectAsync("1", "2");
        File.Move(_log, _folder.File("elsewhere"));
        file.Reopen();
        file.Append(Lines(3, 3));
        await lines.ExpectAsync("3");
    }

    [Fact]
    public async Task Checkpoint_OfAFileThatWasMovedToAnotherVolume_GoesOnThere()
    {
        using GrowingFile file = new(_log, Lines(1, 4));
        QuickOptions options = FollowedLog.Quick with { RotatedNames = ["old/{name}.#"] };
        FileCheckpoint checkpoint = await CheckpointAsync(options, "1", "2");
        MoveToAnotherVolume(_log, _folder.File("old/log.2"));
        file.Reopen();
        file.Append(Lines(5, 8));
        MoveToAnotherVolume(_log, _folder.File("old/log.1"));
        file.Reopen();
        file.Append(Lines(9, 12));
        await using FollowedLog lines = new(_log, options with { Checkpoint = checkpoint });
        await lines.ExpectAsync([.. Enumerable.Range(3, 10).Select(static i => $"{i}")]);
        await lines.ExpectNothingAsync();
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task RotatedNames_CopyBesideTheLog_IsNotRead(bool isStopped)
    {
        using GrowingFile file = new(_log, Lines(1, 5));
        FollowedLog lines = new(_log);
        await lines.ExpectAsync("1", "2", "3", "4", "5");
        FileCheckpoint checkpoint = lines.Current.Checkpoint;
        if (isStopped)
        {
            await lines.DisposeAsync();
        }

        await Task.Delay(20, TestContext.Current.CancellationToken);
        File.Copy(_log, _log + "-20261123");
        file.Append(Lines(6, 6));
        File.Move(_log, _log + ".1");
        file.Reopen();
        file.Append(Lines(7, 7));
        await using FollowedLog after = isStopped ? new(_log, FollowedLog.From(checkpoint)) : lines;
        await after.ExpectAsync("6", "7");
        await after.ExpectNothingAsync();
    }

    [Fact]
    public async Task Checkpoint_ClockWasSetBackBetweenTwoRotations_LosesNothing()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Without times of creation the last writes say which of two files is older.");
        using GrowingFile file = new(_log, Lines(1, 4));
        FileCheckpoint checkpoint = await CheckpointAsync(FollowedLog.Quick, "1", "2");
        await Task.Delay(20, TestContext.Current.CancellationToken);
        File.Move(_log, _log + ".2");
        file.Reopen();
        file.Append(Lines(5, 8));
        File.Move(_log, _log + ".1");
        File.SetLastWriteTimeUtc(_log + ".1", DateTime.UtcNow.AddHours(-1));
        file.Reopen();
        file.Append(Lines(9, 12));
        await using FollowedLog lines = new(_log, FollowedLog.From(checkpoint));
        await lines.ExpectAsync([.. Enumerable.Range(3, 10).Select(static i => $"{i}")]);
        await lines.ExpectNothingAsync();
    }

    [Fact]
    public async Task Checkpoint_OfACompressedFile_GoesOnWithinIt()
    {
        using GrowingFile file = new(_log, Lines(1, 200_000));
        FileCheckpoint checkpoint = await CheckpointAsync(FollowedLog.Quick, "1", "2", "3");
        file.Append("torn");
        File.Move(_log, _log + ".2");
        file.Reopen();
        file.Append("next\n");
        File.Move(_log, _log + ".1");
        file.Reopen();
        file.Append("last\n");
        Compress(_log + ".2");
        Compress(_log + ".1");
        await using FollowedLog lines = new(_log, FollowedLog.From(checkpoint));
        FileCheckpoint within = default;
        for (int i = 4; i <= 200_000; i++)
        {
            Assert.Equal($"{i}", (await lines.NextAsync()).ToString());
            within = i == 150_000 ? lines.Current.Checkpoint : within;
        }

        Assert.Equal("torn", (await lines.NextAsync()).ToString());
        await lines.ExpectAsync("next", "last");
        await using FollowedLog again = new(_log, FollowedLog.From(within));
        await again.ExpectAsync("150001");
    }

    [Fact]
    public async Task RotatedNames_CompressedAtOnceWhileItIsFollowed_NothingComesTwice()
    {
        using GrowingFile file = new(_log, Lines(1, 4));
        await using FollowedLog lines = new(_log, FollowedLog.Quick with { FollowInterval = TimeSpan.FromMilliseconds(300) });
        await lines.ExpectAsync("1", "2", "3", "4");
        for (int i = 5; i <= 7; i++)
        {
            File.Move(_log, _log + ".1");
            file.Reopen();
            file.Append(Lines(i, i));
            if (File.Exists(_log + ".1.gz"))
            {
                File.Move(_log + ".1.gz", $"{_log}.{i}.gz");
            }

            Compress(_log + ".1");
            await lines.ExpectAsync($"{i}");
        }

        await lines.ExpectNothingAsync();
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void RotatedNames_TwiceCompressedBetweenTwoListings_TheFileThatIsOrWasReadIsNoSuccessor(bool isLeft)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows() && !isLeft, "Wine 8 keeps the name of a deleted file while it is open.");
        LogNames names = new(_log, new LogFollowerOptions(), checkpoint: null, isLate: false);
        using GrowingFile file = new(_log, Lines(1, 4));
        Update(names);
        LogFile first = names.TryTake()!;
        File.Move(_log, _log + ".1");
        file.Reopen();
        file.Append(Lines(5, 6));
        DateTime second = LogName.TryLook(_log)!.Value.Age;
        Update(names);
        if (isLeft)
        {
            (long end, ulong hash) = first.HashAt(long.MaxValue, CancellationToken.None);
            names.OnLeft(first, new FileCheckpoint(first.Identity, end) { ContentHash = hash });
        }

        // Its last write came in the tick in which the next file was created, or later, as with logrotate's create.
        File.SetLastWriteTimeUtc(_log + ".1", second);
        Compress(_log + ".1");
        File.Move(_log + ".1.gz", _log + ".2.gz");
        File.Move(_log, _log + ".1");
        Compress(_log + ".1");
        file.Reopen();
        file.Append(Lines(7, 7));
        Update(names);
        List<string> next = [];
        while (names.TryTake() is { } one)
        {
            next.Add(one.Name.Path);
            Assert.Equal(next.Count == 1 ? 4 : 2, one.Length);
            one.Dispose();
        }

        Assert.Equal([_log, _log], next);
        first.Dispose();
    }

    [Fact]
    public void Update_LogCouldNotBeLookedAtAndIsOpenedAMomentLater_IsNoOtherFile()
    {
        LogNames names = new(_log, new LogFollowerOptions(), checkpoint: null, isLate: false);
        using GrowingFile file = new(_log, Lines(1, 4));
        Update(names);
        using LogFile first = names.TryTake()!;

        // EACCES, EIO or ESTALE: somebody has changed permissions, or a server has stumbled.
        LogListing listing = new(new LogName(_log, Identity: default, Length: 0, LastWritten: default, Pattern: -1, Number: ""), [], null);
        Assert.Throws<FileNotFoundException>(() => names.Update(listing, () => listing, CancellationToken.None));
        Update(names);
        Assert.Null(names.TryTake());
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Cut_WithWhatWasNotReadInACopy_ReadsTheCopyOn(bool isStopped)
    {
        using GrowingFile file = new(_log, Lines(1, 100));
        FollowedLog lines = new(_log, FollowedLog.Quick);
        await lines.ExpectAsync([.. Enumerable.Range(1, 100).Select(static i => $"{i}")]);
        FileCheckpoint checkpoint = lines.Current.Checkpoint;
        if (isStopped)
        {
            await lines.DisposeAsync();
        }

        file.Append(Lines(101, 110));
        File.Copy(_log, _log + ".1");
        file.Cut(0);
        file.Append(Lines(111, 115));
        await using FollowedLog after = isStopped ? new(_log, FollowedLog.From(checkpoint)) : lines;
        int last = 100;
        while (last < 115)
        {
            FollowedLine line = await after.NextAsync();
            Assert.Equal($"{++last}", line.ToString());
            Assert.False(line.IsAfterGap);
        }
    }

    [Fact]
    public async Task Checkpoint_AnotherFileHasTheName_IsNotReadFromTheMiddle()
    {
        File.WriteAllText(_log, Lines(1, 100));
        FileCheckpoint checkpoint = await CheckpointAsync(FollowedLog.Quick, "1", "2");
        File.WriteAllText(_log, Lines(501, 600));
        await using FollowedLog lines = new(_log, FollowedLog.From(checkpoint));
        await lines.ExpectAsync("501");
        Assert.True(lines.Current.IsAfterGap);
    }

    [Fact]
    public async Task RotatedNames_NumbersThatIncrease_AreReadInTheirOrder()
    {
        using GrowingFile file = new(_log, Lines(1, 1));
        FileCheckpoint checkpoint = await CheckpointAsync(FollowedLog.Quick, "1");
        for (int i = 1; i <= 11; i++)
        {
            await Task.Delay(20, TestContext.Current.CancellationToken);
            File.Move(_log, $"{_log}.{i}");
            file.Reopen();
            file.Append(Lines(i + 1, i + 1));
        }

        await using FollowedLog lines = new(_log, FollowedLog.From(checkpoint));
        await lines.ExpectAsync([.. Enumerable.Range(2, 11).Select(static i => $"{i}")]);
        await lines.ExpectNothingAsync();
    }

    /// <summary>As gzip(1): a new file with the old time, and the old one is gone.</summary>
    private static void Compress(string path)
    {
        DateTime written = File.GetLastWriteTimeUtc(path);
        using (FileStream compressed = File.Create(path + ".gz"))
        {
            using GZipStream zip = new(compressed, CompressionLevel.Fastest);
            using FileStream content = new(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete);
            content.CopyTo(zip);
        }

        File.SetLastWriteTimeUtc(path + ".gz", written);
        File.Delete(path);
    }

    private static string Lines(int first, int last)
        => string.Concat(Enumerable.Range(first, last - first + 1).Select(static i => $"{i}\n"));

    /// <summary>Gives the names a listing of the folder, as the search does.</summary>
    private void Update(LogNames names)
    {
        FolderNames folder = new(_folder.Path, TimeProvider.System);
        names.Update(Take(), Take, CancellationToken.None);

        LogListing Take()
        {
            folder.Look(isSure: true);
            return LogListing.Take(_log, names.Rotated, _ => folder);
        }
    }

    /// <summary>As mv(1): a new file with the old time, and the old one is gone.</summary>
    private static void MoveToAnotherVolume(string from, string to)
    {
        DateTime written = File.GetLastWriteTimeUtc(from);
        File.Copy(from, to);
        File.SetLastWriteTimeUtc(to, written);
        File.Delete(from);
    }

    /// <summary>The position after these lines, which are the first.</summary>
    private async Task<FileCheckpoint> CheckpointAsync(QuickOptions options, params string[] first)
    {
        await using FollowedLog lines = new(_log, options);
        await lines.ExpectAsync(first);
        return lines.Current.Checkpoint;
    }
}
