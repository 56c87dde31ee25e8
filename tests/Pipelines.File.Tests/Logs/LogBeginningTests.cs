namespace FilePipelines.Tests;

/// <summary>What files begin with that is no line: a byte order mark, and a hole that a truncation has left.</summary>
public sealed class LogBeginningTests : FileTests
{
    private const int Hole = 5 * 1024 * 1024;

    private readonly string _log;

    public LogBeginningTests() => _log = _folder.File("log");

    [Fact]
    public async Task ByteOrderMark_IsNoPartOfTheFirstLineAndLinesKeepTheirCheckpoints()
    {
        using GrowingFile file = new(_log);
        file.Append("\uFEFF{}\n\uFEFFx\n");
        await using FollowedLog lines = new(_log);
        FollowedLine first = await lines.NextAsync();
        Assert.Equal("{}"u8.ToArray(), first.Bytes.ToArray());
        Assert.Equal(6, first.Checkpoint.Offset);
        FollowedLine second = await lines.NextAsync();
        Assert.Equal("\uFEFFx"u8.ToArray(), second.Bytes.ToArray());
    }

    [Fact]
    public async Task ByteOrderMark_OfAnEmptyLineAndOfAFileThatIsRotated_IsRemoved()
    {
        using GrowingFile file = new(_log);
        file.Append("\uFEFF\n1\n");
        await using FollowedLog lines = new(_log);
        await lines.ExpectAsync("", "1");
        File.Move(_log, _log + ".1");
        file.Reopen();
        file.Append("\uFEFF2\n");
        FollowedLine next = await lines.NextAsync();
        Assert.Equal("2"u8.ToArray(), next.Bytes.ToArray());
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Hole_OfAWriterThatDoesNotAppend_IsSkippedAndTold(bool isSeenEmpty)
    {
        using FileStream writer = new(_log, FileMode.Create, FileAccess.Write, FileShare.ReadWrite | FileShare.Delete, 0);
        writer.Write("one\n"u8);
        writer.Position = Hole;
        writer.Write("\ntwo\n"u8);
        LogFollower follower = new(_log, new QuickOptions { LastLines = 1 });
        await using IAsyncEnumerator<FollowedLine> lines = follower.ReadLinesAsync(TestContext.Current.CancellationToken)
            .GetAsyncEnumerator(TestContext.Current.CancellationToken);
        Assert.Equal("two", await NextAsync());

        // As copytruncate.
        ValueTask<bool> waiting = default;
        File.Copy(_log, _log + ".1");
        using (FileStream cutting = new(_log, FileMode.Open, FileAccess.Write, FileShare.ReadWrite | FileShare.Delete))
        {
            cutting.SetLength(0);
        }

        if (isSeenEmpty)
        {
            waiting = lines.MoveNextAsync();
            await Task.Delay(200, TestContext.Current.CancellationToken);
            Assert.False(waiting.IsCompleted);
        }

        writer.Write("three\nfour\n"u8);
        Assert.True(isSeenEmpty ? await waiting : await lines.MoveNextAsync());
        Assert.Equal("three", Encoding.UTF8.GetString(lines.Current.Bytes.Span));
        Assert.Equal(Hole + 5 + 6, lines.Current.Checkpoint.Offset);
        Assert.Equal("four", await NextAsync());
        Assert.Equal(Hole + 5, follower.GetStatistics().BytesSkipped);

        // A restart goes on behind the hole.
        FileCheckpoint checkpoint = lines.Current.Checkpoint;
        writer.Write("five\n"u8);
        await using FollowedLog after = new(_log, FollowedLog.From(checkpoint));
        await after.ExpectAsync("five");

        async Task<string> NextAsync()
        {
            Assert.True(await lines.MoveNextAsync());
            return Encoding.UTF8.GetString(lines.Current.Bytes.Span);
        }
    }

    [Fact]
    public async Task Nuls_AtTheBeginningOfALine_AreSkippedAlsoWhereTheyAreNoHoleAndOneIsNot()
    {
        using GrowingFile file = new(_log);
        file.Append("1\n" + new string('\0', 10_000) + "2\n\0one\n");
        await using FollowedLog lines = new(_log);
        await lines.ExpectAsync("1", "2", "\0one");
    }

    /// <summary>A hole ends with a block of the file system, or of what is read at once, and one NUL more belongs to it, too.</summary>
    [Theory]
    [InlineData(4096, 3), InlineData(64 * 1024, 3), InlineData(Hole, 3), InlineData(4096, 0), InlineData(Hole, 0)]
    public async Task Nuls_OneIsLeftBehindABlockOfThem_IsSkippedWithThem(int block, int before)
    {
        using FileStream writer = new(_log, FileMode.Create, FileAccess.Write, FileShare.ReadWrite | FileShare.Delete, bufferSize: 0);
        writer.Write("1\n\n"u8[..before]);
        await using FollowedLog lines = new(_log);
        if (before > 0)
        {
            await lines.ExpectAsync("1", "");
        }

        writer.SetLength(block);
        Task<bool> step = lines.StepAsync();
        await Task.Delay(50, TestContext.Current.CancellationToken);
        Assert.False(step.IsCompleted);
        writer.Position = block + 1;
        writer.Write("2\n"u8);
        await lines.ExpectAsync("2");
        writer.Write("\0"u8);
        await Task.Delay(50, TestContext.Current.CancellationToken);
        writer.Write("3\n"u8);
        await lines.ExpectAsync("\03");
    }
}
