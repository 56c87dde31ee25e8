namespace FilePipelines.Tests;

/// <summary>
/// Which file comes next where it is compressed, or cannot be looked at: no line is lost, and none comes twice.
/// </summary>
public sealed class LogSuccessionTests : FileTests
{
    private readonly string _log;

    public LogSuccessionTests() => _log = _folder.File("log");

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
        LogStory.Compress(_log + ".2");
        LogStory.Compress(_log + ".1");
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

            LogStory.Compress(_log + ".1");
            await lines.ExpectAsync($"{i}");
        }

        await lines.ExpectNothingAsync();
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public void RotatedNames_TwiceCompressedBetweenTwoListings_TheFileThatIsOrWasReadIsNoSuccessor(bool isLeft)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows() && !isLeft, "Wine 8 keeps the name of a deleted file while it is open.");
        LogNames names = new(_log, new LogFollowerOptions(), checkpoint: null, isLate: false);
        using GrowingFile file = new(_log, Lines(1, 4));
        names.Search();
        LogFile first = names.TryTake()!;
        File.Move(_log, _log + ".1");
        file.Reopen();
        file.Append(Lines(5, 6));
        DateTime second = LogName.TryLook(_log)!.Value.Age;
        names.Search();
        if (isLeft)
        {
            (long end, ulong hash) = first.HashAt(long.MaxValue, CancellationToken.None);
            names.OnLeft(first, new FileCheckpoint(first.Identity, end) { ContentHash = hash });
        }

        // Its last write came in the tick in which the next file was created, or later, as with logrotate's create.
        File.SetLastWriteTimeUtc(_log + ".1", second);
        LogStory.Compress(_log + ".1");
        File.Move(_log + ".1.gz", _log + ".2.gz");
        File.Move(_log, _log + ".1");
        LogStory.Compress(_log + ".1");
        file.Reopen();
        file.Append(Lines(7, 7));
        names.Search();
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
        names.Search();
        using LogFile first = names.TryTake()!;

        // EACCES, EIO or ESTALE: somebody has changed permissions, or a server has stumbled.
        LogListing listing = new(new LogName(_log, Identity: default, Length: 0, LastWritten: default, Pattern: -1, Number: ""), [], null);
        Assert.Throws<FileNotFoundException>(() => names.Update(listing, () => listing, CancellationToken.None));
        names.Search();
        Assert.Null(names.TryTake());
    }

    [Fact]
    public void Update_TruncatedAndTheFolderCannotBeListedAgain_DoesNotKnowWhichCopiesThereAre()
    {
        LogNames names = new(_log, new LogFollowerOptions(), checkpoint: null, isLate: false);
        using GrowingFile file = new(_log, Lines(1, 2));
        names.Search();
        LogFile first = names.TryTake()!;
        (long end, ulong hash) = first.HashAt(long.MaxValue, CancellationToken.None);
        File.Copy(_log, _log + ".1");
        file.Cut(0);
        file.Append(Lines(3, 3));
        names.OnCut(first, new FileCheckpoint(first.Identity, end) { ContentHash = hash });
        LogListing listing = names.Listing();

        // EIO: it has the names of before, and another copy may be there.
        names.Update(listing, () => listing with { Failure = new IOException("It cannot be listed.") }, CancellationToken.None);
        List<LogFile> next = [];
        while (names.TryTake() is { } taken)
        {
            next.Add(taken);
        }

        Assert.Empty(next[^1].Beginning!);
        next.ForEach(static taken => taken.Dispose());
    }

    /// <summary>What LastLines asks for is counted once: what is written later comes, whatever happens before any of it was read.</summary>
    [Fact]
    public void LastLines_TruncatedBeforeAnythingWasRead_WhatWasWrittenSinceIsNotSkipped()
    {
        LogNames names = new(_log, new LogFollowerOptions { LastLines = 0 }, checkpoint: null, isLate: false);
        using GrowingFile file = new(_log);
        names.Search();
        LogFile first = names.TryTake()!;
        file.Append(Lines(1, 2));
        File.Copy(_log, _log + ".1");
        file.Cut(0);
        file.Append(Lines(3, 3));
        names.OnCut(first, position: null);
        names.Search();
        List<(string, long)> next = [];
        while (names.TryTake() is { } taken)
        {
            next.Add((taken.Name.Path, taken.Offset));
            taken.Dispose();
        }

        Assert.Equal([(_log + ".1", 0), (_log, 0)], next);
    }

    private static string Lines(int first, int last)
        => string.Concat(Enumerable.Range(first, last - first + 1).Select(static i => $"{i}\n"));

    /// <summary>The position after these lines, which are the first.</summary>
    private async Task<FileCheckpoint> CheckpointAsync(QuickOptions options, params string[] first)
    {
        await using FollowedLog lines = new(_log, options);
        await lines.ExpectAsync(first);
        return lines.Current.Checkpoint;
    }
}
