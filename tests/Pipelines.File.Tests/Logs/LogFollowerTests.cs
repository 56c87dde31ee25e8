using System.Text;
using Pipelines.File;

namespace FilePipelines.Tests;

public sealed class LogFollowerTests : FileTests
{
    private readonly string _log;

    public LogFollowerTests() => _log = _folder.File("log");

    [Fact]
    public async Task ReadLinesAsync_LinesOfBothKinds_CheckpointsStandBehindThem()
    {
        using GrowingFile file = new(_log, "one\r\n\ntwo\n\r\nhalf");
        await using FollowedLog lines = new(_log);
        (string Text, long Offset)[] expected = [("one", 5), ("", 6), ("two", 10), ("", 12)];
        foreach ((string text, long offset) in expected)
        {
            FollowedLine line = await lines.NextAsync();
            Assert.Equal(text, line.ToString());
            Assert.Equal(offset, line.Checkpoint.Offset);
            Assert.True(FileIdentity.TryGet(_log, out FileIdentity identity));
            Assert.Equal(identity, line.Checkpoint.Identity);
            Assert.False(line.IsAfterGap);
        }

        await lines.ExpectNothingAsync();
        file.Append(" a line\r");
        await lines.ExpectNothingAsync();
        file.Append("\n");
        await lines.ExpectAsync("half a line");
        Assert.Equal(25, lines.Current.Checkpoint.Offset);
    }

    [Theory]
    [InlineData(5)]
    [InlineData(10)]
    [InlineData(12)]
    public async Task Checkpoint_BehindALine_GoesOnWithTheNext(int offset)
    {
        const string Content = "one\r\n\ntwo\n\r\nlast\n";
        File.WriteAllText(_log, Content);
        Assert.True(FileIdentity.TryGet(_log, out FileIdentity identity));
        await using FollowedLog lines = new(_log, FollowedLog.From(new FileCheckpoint(identity, offset)));
        await lines.ExpectAsync(Content[offset..^1].Split('\n').Select(static line => line.TrimEnd('\r')).ToArray());
    }

    [Fact]
    public async Task ReadLinesAsync_LinesOfEveryLengthOverSegments_AreWhole()
    {
        Random random = new(1);
        string[] expected = [.. Enumerable.Range(0, 300)
            .Select(i => new string((char)('a' + (i % 26)), random.Next(i % 10 == 0 ? 300_000 : 2000)))];
        using GrowingFile file = new(_log);
        await using FollowedLog lines = new(_log);
        int next = 0;
        foreach (string line in expected)
        {
            string text = line + (random.Next(2) == 0 ? "\r\n" : "\n");
            int cut = random.Next(text.Length);
            file.Append(text[..cut]);
            if (next % 7 == 0)
            {
                Assert.False(lines.StepAsync().IsCompleted);
            }

            file.Append(text[cut..]);
            await lines.ExpectAsync(line);
            next++;
        }

        Assert.Equal(file.Length, lines.Current.Checkpoint.Offset);
    }

    [Fact]
    public async Task MaxLineLength_LongerLine_ComesInPiecesAndCanBeGoneOnWithin()
    {
        using GrowingFile file = new(_log, "123456\r\n1234567\r\n12345678901234567890\n1\n");
        QuickOptions options = FollowedLog.Quick with { MaxLineLength = 6 };
        await using FollowedLog lines = new(_log, options);
        FileCheckpoint within = default;
        foreach ((string text, bool hasLineEnd) in new[] { ("123456", true), ("123456", false), ("7", true), ("123456", false),
            ("789012", false), ("345678", false), ("90", true), ("1", true) })
        {
            FollowedLine line = await lines.NextAsync();
            Assert.Equal(text, line.ToString());
            Assert.Equal(hasLineEnd, line.HasLineEnd);
            within = text == "789012" ? line.Checkpoint : within;
        }

        Assert.Equal(file.Length, lines.Current.Checkpoint.Offset);
        file.Append("123456789");
        Assert.Equal("123456", (await lines.NextAsync()).ToString());
        await using FollowedLog again = new(_log, options with { Checkpoint = within });
        Assert.Equal("345678", (await again.NextAsync()).ToString());
    }

    [Fact]
    public async Task MaxLineLength_TornLineThatIsLongerByOne_ComesInPieces()
    {
        using GrowingFile file = new(_log, "1234567");
        await using FollowedLog lines = new(_log, FollowedLog.Quick with { MaxLineLength = 6 });
        _ = lines.StepAsync();
        await lines.ExpectNothingAsync();
        File.Move(_log, _log + ".1");
        file.Reopen();
        file.Append("8\n");
        Assert.Equal("123456", (await lines.NextAsync()).ToString());
        FollowedLine rest = await lines.NextAsync();
        Assert.Equal(("7", false, 7L), (rest.ToString(), rest.HasLineEnd, rest.Checkpoint.Offset));
        await lines.ExpectAsync("8");
    }

    [Theory]
    [InlineData("{name}.#", "service.log.1", true)]
    [InlineData("{name}.#", "service.log.12", true)]
    [InlineData("{name}.#", "service.log.1.gz", false)]
    [InlineData("{name}.#", "service.log.", false)]
    [InlineData("{name}.#", "service.log", false)]
    [InlineData("{name}.#", "service.log.1-", false)]
    [InlineData("{name}.#", "other.log.1", false)]
    [InlineData("{name}-#", "service.log-20261122", true)]
    [InlineData("{name}-#", "service.log-2026-11-22_13.00", true)]
    [InlineData("{name}-#", "service.log-audit", false)]
    [InlineData("{stem}-#{extension}", "service-20261122.log", true)]
    [InlineData("{stem}-#{extension}", "service-20261122.log.gz", false)]
    [InlineData("{stem}*{extension}", "service-anything.log", true)]
    [InlineData("{stem}*{extension}", "service", false)]
    [InlineData("@*.s", "@400000005f.s", true)]
    [InlineData("{name}.old", "service.log.old", true)]
    [InlineData("{name}.old", "service.log.older", false)]
    [InlineData("{name}#g", "service.log", false)]
    public void RotatedNames_Pattern_MeansWhatItSays(string pattern, string name, bool isMeant)
        => Assert.Equal(isMeant, new RotatedName(pattern, _folder.File("service.log")).IsMatch(name, out _));

    [Theory]
    [InlineData("missing/log")]
    [InlineData("missing")]
    public async Task ReadLinesAsync_MissingAtFirstAndInBetween_IsWaitedFor(string name)
    {
        string path = _folder.File(name);
        await using FollowedLog lines = new(path, FollowedLog.Quick with { LastLines = 0 });
        await lines.ExpectNothingAsync();
        Directory.CreateDirectory(Path.GetDirectoryName(path)!);
        File.WriteAllText(path, "1\n");
        await lines.ExpectAsync("1");
        GrowingFile.Delete(path);
        await lines.ExpectNothingAsync();
        await Task.Delay(300, _stop);
        File.WriteAllText(path, "2\n");
        await lines.ExpectAsync("2");
    }

    [Fact]
    public async Task ReadLinesAsync_GoneUntilTheFileIsLeftAndThenBack_GoesOnWhereItWas()
    {
        using GrowingFile file = new(_log, "1\n");
        LogFollower follower = new(_log, FollowedLog.Quick with { FollowInterval = TimeSpan.FromMilliseconds(5) });
        IAsyncEnumerator<FollowedLine> lines = follower.ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        Assert.True(await GrowingFile.Bounded(lines.MoveNextAsync().AsTask()));
        Task<bool> next = lines.MoveNextAsync().AsTask();
        File.Move(_log, _folder.File("elsewhere"));
        while (follower.GetStatistics().Files > 0)
        {
            await Task.Delay(5, _stop);
        }

        file.Append("2\n");
        File.Move(_folder.File("elsewhere"), _log);
        Assert.True(await GrowingFile.Bounded(next));
        Assert.Equal("2", lines.Current.ToString());
        Assert.False(lines.Current.IsAfterGap);
        await lines.DisposeAsync();
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task ReadLinesAsync_TruncatedWhileItWasAway_BeginsAgainAndTellsUnlessThereIsACopy(bool hasCopy)
    {
        using GrowingFile file = new(_log, "1\n2\n");
        Assert.SkipUnless(FileIdentity.TryGet(_log, out FileIdentity identity) && identity.Created != 0,
            "The system does not tell when a file was made.");

        // The search looks when the clock goes on, so not between the copy and the truncated file.
        ManualClock clock = new();
        TimeSpan interval = TimeSpan.FromSeconds(1);
        await using FollowedLog lines = new(_log, FollowedLog.Quick with { TimeProvider = clock, FollowInterval = interval });
        await lines.ExpectAsync("1", "2");
        Task<bool> next = lines.StepAsync();
        string elsewhere = _folder.File("elsewhere");
        File.Move(_log, elsewhere);
        await Eventually.TrueAsync(() =>
        {
            clock.Advance(interval);
            return lines.Statistics.Files == 0;
        });
        string copy = _folder.File("copy");
        if (hasCopy)
        {
            file.Append("3\n");
            File.Copy(elsewhere, copy);
        }

        file.Cut(0);
        file.Append("4\n");
        if (hasCopy)
        {
            File.Move(copy, _log + ".1");
        }

        File.Move(elsewhere, _log);
        await clock.AdvanceUntilAsync(next, interval);
        FollowedLine line = await lines.NextAsync();
        if (hasCopy)
        {
            Assert.Equal(("3", false), (line.ToString(), line.IsAfterGap));
            await clock.AdvanceUntilAsync(lines.StepAsync(), interval);
            line = await lines.NextAsync();
        }

        Assert.Equal(("4", !hasCopy), (line.ToString(), line.IsAfterGap));
    }

    [Fact]
    public void IdleTimeout_LongerThanATimerTakes_ThrowsAtOnce()
        => Assert.Throws<ArgumentOutOfRangeException>(() => new LogFollower(_log, new() { IdleTimeout = TimeSpan.MaxValue }));

    [Theory]
    [InlineData(null, "1 2 3 4")]
    [InlineData(0, "4")]
    [InlineData(2, "2 3 4")]
    [InlineData(3, "1 2 3 4")]
    [InlineData(9, "1 2 3 4")]
    public async Task LastLines_OfAFileThatIsThere_AreThoseAskedFor(int? count, string expected)
    {
        using GrowingFile file = new(_log, "1\n2\n3\n");
        await using FollowedLog lines = new(_log, FollowedLog.Quick with { LastLines = count });
        string[] there = expected.Split(' ')[..^1];
        await lines.ExpectAsync(there);
        await lines.ExpectNothingAsync();
        file.Append("4\n");
        await lines.ExpectAsync("4");
    }

    [Fact]
    public async Task LastLines_OfAFileThatEndsWithinALine_BeginWithAWholeLine()
    {
        using GrowingFile file = new(_log, new string('x', 100_000) + "\n" + new string('y', 200_000));
        await using FollowedLog lines = new(_log, FollowedLog.Quick with { LastLines = 0 });
        await lines.ExpectNothingAsync();
        file.Append("z\n");
        await lines.ExpectAsync(new string('y', 200_000) + "z");
    }

    [Fact]
    public async Task Checkpoint_InACompressedFileThatIsDamagedBeforeIt_GoesOnBehindThatFileAndTells()
    {
        // A header, and a block of a type that there is not.
        File.WriteAllBytes(_log + ".1.gz", [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, .. Enumerable.Repeat((byte)0xFF, 100)]);
        Assert.SkipUnless(FileIdentity.TryGet(_log + ".1.gz", out FileIdentity identity), "The system has no identities.");
        File.WriteAllText(_log, "1\n2\n");
        await using FollowedLog lines = new(_log, FollowedLog.From(new FileCheckpoint(identity, 4)));
        await lines.ExpectAsync("1");
        Assert.True(lines.Current.IsAfterGap);
        await lines.ExpectAsync("2");
        Assert.False(lines.Current.IsAfterGap);
    }

    [Theory]
    [InlineData("end")]
    [InlineData("missing")]
    [InlineData("renamed")]
    public async Task ReadLinesAsync_CanceledWhileItWaits_EndsAtOnceAndLeavesNothingOpen(string wait)
    {
        if (wait != "missing")
        {
            File.WriteAllText(_log, "1\n");
        }

        await using FollowedLog lines = new(
            _log, FollowedLog.Quick with { FollowInterval = TimeSpan.FromDays(1), QuietTime = TimeSpan.FromDays(1) });
        if (wait != "missing")
        {
            await lines.ExpectAsync("1");
        }

        Task<bool> step = lines.StepAsync();
        if (wait == "renamed")
        {
            File.Move(_log, _log + ".1");
            File.WriteAllText(_log, "2\n");
        }

        await Task.Delay(100, _stop);
        Assert.False(step.IsCompleted);
        await lines.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => GrowingFile.Bounded(step));
        if (wait != "missing")
        {
            await Eventually.FreeAsync(wait == "renamed" ? _log + ".1" : _log);
        }
    }

    [Fact]
    public async Task ReadLinesAsync_Left_ClosesTheFile()
    {
        File.WriteAllText(_log, "1\n2\n3\n");
        await foreach (FollowedLine line in new LogFollower(_log).ReadLinesAsync(_stop))
        {
            Assert.Equal("1", line.ToString());
            break;
        }

        await Eventually.FreeAsync(_log);
    }

    [Fact]
    public async Task ReadLinesAsync_RotatedWhileNoDescriptorIsLeft_LosesNothing()
    {
        ChildProcess.SkipUnlessLinux("prlimit");
        (int status, string output, string error) = await ChildProcess.RunAsync($"prlimit --nofile=200 "
            + $"{ChildProcess.Command("starvedlog", _log)}").WaitAsync(Eventually.Limit, _stop);
        Assert.True(output == "one\ntwo\nthree\n" && status == 0, $"{status} {output} {error}");
    }

    [Fact]
    public async Task ReadLinesAsync_OfAFolder_Throws()
        => await Assert.ThrowsAsync<UnauthorizedAccessException>(
            async () => await GrowingFile.Bounded(new FollowedLog(_folder.Path).StepAsync()));

    [Fact]
    public async Task Checkpoint_OfAFolder_ThrowsAtOnce()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "A file whose deletion is pending denies access there, too, and is tried again.");

        // Only after a rotation is a file that cannot be opened tried again.
        LogFollowerOptions options = FollowedLog.From(default) with { FollowInterval = TimeSpan.FromMinutes(10) };
        await using FollowedLog lines = new(_folder.Path, options);
        await Assert.ThrowsAsync<UnauthorizedAccessException>(async () => await GrowingFile.Bounded(lines.StepAsync()));
    }

    [Fact]
    public void Options_ThatCannotBe_Throw()
    {
        Assert.Throws<ArgumentException>("path", () => new LogFollower(""));
        Assert.Throws<ArgumentOutOfRangeException>("LastLines", () => new LogFollower(_log, new LogFollowerOptions { LastLines = -1 }));
        Assert.Throws<ArgumentOutOfRangeException>(
            "QuietTime", () => new LogFollower(_log, new LogFollowerOptions { QuietTime = TimeSpan.FromTicks(-1) }));
        Assert.Throws<ArgumentOutOfRangeException>(
            "FollowInterval", () => new LogFollower(_log, new LogFollowerOptions { FollowInterval = TimeSpan.Zero }));
        Assert.Throws<ArgumentOutOfRangeException>(
            "MaxLineLength", () => new LogFollower(_log, new LogFollowerOptions { MaxLineLength = 0 }));
        foreach (string pattern in (string[])["", "{name}.?", "{name}.#.*"])
        {
            LogFollowerOptions options = new() { RotatedNames = [pattern] };
            Assert.Throws<ArgumentException>("RotatedNames", () => new LogFollower(_log, options));
        }

        Assert.Throws<ArgumentNullException>("RotatedNames", () => new LogFollower(_log, new LogFollowerOptions { RotatedNames = null! }));
    }

    [Fact]
    public async Task ReadLinesAsync_ManyLines_AllocatesNothingForALine()
    {
        File.WriteAllBytes(
            _log, Encoding.UTF8.GetBytes(string.Concat(Enumerable.Range(0, 200_000).Select(static i => $"a line, number {i}\r\n"))));
        long allocated = long.MaxValue;

        // Two objects for each batch of lines that is read at once.
        const int Most = 50_000;
        foreach (int _ in Warm.Rounds(1, () => allocated <= Most))
        {
            allocated = await AllocatedAsync();
        }

        Assert.InRange(allocated, 0, Most);
    }

    /// <summary>
    /// What the second half of 200,000 lines allocates, bytes, if one thread reads them: a read that waits for the device goes on
    /// elsewhere.
    /// </summary>
    private async Task<long> AllocatedAsync()
    {
        int count = 0;
        (int Thread, long Bytes) before = default;
        await foreach (FollowedLine line in new LogFollower(_log).ReadLinesAsync(_stop))
        {
            count++;
            before = count == 100_000 ? (Environment.CurrentManagedThreadId, GC.GetAllocatedBytesForCurrentThread()) : before;
            if (count == 200_000)
            {
                break;
            }
        }

        return before.Thread == Environment.CurrentManagedThreadId ? GC.GetAllocatedBytesForCurrentThread() - before.Bytes : long.MaxValue;
    }
}
