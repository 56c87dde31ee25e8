using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>
/// Logs that are copied and truncated (copytruncate), several times between two looks: what only the copies hold is read there.
/// </summary>
public sealed class LogTruncationTests : IDisposable
{
    /// <summary>More lines than the follower takes at once, so that it still reads a copy while the log is truncated again.</summary>
    private const int Many = 5000;

    private readonly TempFolder _folder = new();
    private readonly string _log;
    private readonly List<int> _gaps = [];
    private int _last;
    private int _written;

    public LogTruncationTests() => _log = _folder.File("log");

    public void Dispose() => _folder.Dispose();

    [Theory]
    [InlineData("{0}.1", 1)]
    [InlineData("{0}.1", 4)]
    [InlineData("{0}-2026112{1}", 1)]
    [InlineData("{0}-2026112{1}", 4)]
    public async Task Cut_SeveralTimesBetweenTwoLooks_ReadsEachCopy(string copy, int times)
    {
        using GrowingFile file = new(_log);
        Write(file, 100);
        FollowedLog lines = new(_log);
        await ExpectAsync(lines, 100);
        for (int i = 0; i < times; i++)
        {
            Write(file, 10);
            CopyAndCut(file, copy, i);
        }

        Write(file, 5);
        await using (lines)
        {
            await ExpectAsync(lines, _written);
            await lines.ExpectNothingAsync();
        }

        Assert.Empty(_gaps);
    }

    [Theory]
    [InlineData("{0}.1", false)]
    [InlineData("{0}.1", true)]
    [InlineData("{0}-2026112{1}", false)]
    public async Task Cut_AgainWhileACopyIsRead_ReadsTheNextCopyToo(string copy, bool isRemoved)
    {
        using GrowingFile file = new(_log);
        Write(file, 2);
        await using FollowedLog lines = new(_log);
        await ExpectAsync(lines, 1);
        Write(file, Many);
        CopyAndCut(file, copy, 0);
        Write(file, Many);
        await ExpectAsync(lines, Many / 2);
        CopyAndCut(file, copy, 1);
        Write(file, 5);
        if (isRemoved)
        {
            // As with "rotate 1": the copy that is read has no name any more.
            File.Delete(_log + ".2");
        }

        await ExpectAsync(lines, _written);
        await lines.ExpectNothingAsync();
        // Nothing holds any more what was read of the copy that is gone.
        Assert.Equal(isRemoved ? [Many + 3] : (int[])[], _gaps);
    }

    [Fact]
    public async Task Cut_TheNextCopyHasJustBegun_NothingComesTwice()
    {
        using GrowingFile file = new(_log);
        Write(file, 2);
        await using FollowedLog lines = new(_log);
        await ExpectAsync(lines, 1);
        Write(file, Many);
        CopyAndCut(file, "{0}.1", 0);
        Write(file, 10);
        File.Move(_log + ".1", _log + ".2");
        File.WriteAllBytes(_log + ".1", []);
        await ExpectAsync(lines, Many / 2);
        File.Copy(_log, _log + ".1", overwrite: true);
        await ExpectAsync(lines, _written);
        await lines.ExpectNothingAsync();
    }

    [Fact]
    public async Task Cut_TheCopyIsThereAndTheLogIsNotCutYet_NothingComesTwice()
    {
        using GrowingFile file = new(_log);
        Write(file, 100);
        await using FollowedLog lines = new(_log);
        await ExpectAsync(lines, 100);
        Write(file, 10);
        CopyAndCut(file, "{0}.1", 0);
        Write(file, 10);
        File.Move(_log + ".1", _log + ".2");
        File.Copy(_log, _log + ".1");
        await ExpectAsync(lines, _written);
        Write(file, 1);
        await ExpectAsync(lines, _written);
        file.Cut(0);
        Write(file, 1);
        await ExpectAsync(lines, _written);
        await lines.ExpectNothingAsync();
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Cut_AgainBeforeAnyLineOfItWasRead_ReadsTheCopyBeforeTheNextLine(bool hasSameNames)
    {
        using GrowingFile file = new(_log);
        Write(file, 3);
        await using FollowedLog lines = new(_log);
        await ExpectAsync(lines, 3);
        CopyAndCut(file, "{0}.1", 0);
        await lines.ExpectNothingAsync();

        // Nobody can read the log before it is empty again: what is written to it is in its copy alone.
        using GrowingFile copy = new(_folder.File("copy"));
        Write(copy, 4);
        if (!hasSameNames)
        {
            File.Move(_log + ".1", _log + ".2");
        }

        await Eventually.MovedOverAsync(copy.Path, _log + ".1");
        Write(file, 1);
        await ExpectAsync(lines, _written);
        await lines.ExpectNothingAsync();
    }

    [Theory]
    [InlineData(1)]
    [InlineData(3)]
    [InlineData(5)]
    public async Task Cut_AgainWhileTheCallerHasABatch_ReadsTheCopyThatIsLeft(int count)
    {
        using GrowingFile file = new(_log);
        Write(file, 3);
        await using FollowedLog lines = new(_folder.File("log*"));
        await ExpectAsync(lines, 3);

        // The caller has the batch, so the follower does not read. The first copy is gone, and the log is shorter than before, or not.
        file.Cut(0);
        using GrowingFile copy = new(_folder.File("copy"));
        Write(copy, 4);
        File.Move(copy.Path, _log + ".1");
        Write(file, count);

        // When it has opened another log, it has seen the copy, too.
        _folder.File("logs", []);
        await Eventually.TrueAsync(() => lines.Statistics.Files == 2);
        await ExpectAsync(lines, _written);
        await lines.ExpectNothingAsync();
        Assert.Equal([4], _gaps);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Cut_LinesThatDifferOnlyAtTheirBeginning_IsSeen(bool isStopped)
    {
        string end = new('.', 200);
        using GrowingFile file = new(_log, $"1{end}\n2{end}\n");
        FollowedLog lines = new(_log);
        await lines.ExpectAsync($"1{end}", $"2{end}");
        FileCheckpoint checkpoint = lines.Current.Checkpoint;
        if (isStopped)
        {
            await lines.DisposeAsync();
        }

        file.Append($"3{end}\n");
        File.Copy(_log, _log + ".1");
        file.Cut(0);
        file.Append($"4{end}\n5{end}\n6{end}\n");
        await using FollowedLog after = isStopped ? new(_log, FollowedLog.From(checkpoint)) : lines;
        await after.ExpectAsync($"3{end}", $"4{end}", $"5{end}", $"6{end}");
    }

    [Theory]
    [InlineData(false, 1)]
    [InlineData(false, 3)]
    [InlineData(true, 1)]
    [InlineData(true, 3)]
    public async Task Cut_MoreWasReadThanTheCopyHas_GoesOnAfterThatCopy(bool isStopped, int times)
    {
        using GrowingFile file = new(_log);
        Write(file, 500);
        FollowedLog lines = new(_log);
        await ExpectAsync(lines, 500);
        File.Copy(_log, _log + ".1");
        Write(file, 5);
        await ExpectAsync(lines, 505);
        FileCheckpoint checkpoint = lines.Current.Checkpoint;
        if (isStopped)
        {
            await lines.DisposeAsync();
        }

        file.Cut(0);
        for (int i = 1; i < times; i++)
        {
            Write(file, 10);
            CopyAndCut(file, "{0}.1", i);
        }

        Write(file, 5);
        await using FollowedLog after = isStopped ? new(_log, FollowedLog.From(checkpoint)) : lines;
        await ExpectAsync(after, _written);
        await after.ExpectNothingAsync();
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Checkpoint_WithinACopy_GoesOnWithTheCopiesAfterIt(bool isNextCut)
    {
        using GrowingFile file = new(_log);
        Write(file, 100);
        FileCheckpoint checkpoint;
        await using (FollowedLog lines = new(_log))
        {
            await ExpectAsync(lines, 100);
            Write(file, 10);
            CopyAndCut(file, "{0}.1", 0);
            await ExpectAsync(lines, 105);
            checkpoint = lines.Current.Checkpoint;
        }

        Write(file, 10);
        File.Move(_log + ".1", _log + ".2");
        File.Copy(_log, _log + ".1");
        if (isNextCut)
        {
            file.Cut(0);
            Write(file, 10);
        }

        await using FollowedLog after = new(_log, FollowedLog.From(checkpoint));
        await ExpectAsync(after, _written);
        await after.ExpectNothingAsync();
    }

    /// <summary>As logrotate's copytruncate.</summary>
    private void CopyAndCut(GrowingFile file, string copy, int number)
    {
        string name = string.Format(System.Globalization.CultureInfo.InvariantCulture, copy, _log, number);
        for (int i = number; i > 0 && File.Exists(name); i--)
        {
            File.Move($"{_log}.{i}", $"{_log}.{i + 1}");
        }

        File.Copy(_log, name);
        file.Cut(0);
    }

    private void Write(GrowingFile file, int count)
    {
        file.Append(string.Concat(Enumerable.Range(_written + 1, count).Select(static i => $"line {i}\n")));
        _written += count;
    }

    private async Task ExpectAsync(FollowedLog lines, int last)
    {
        while (_last < last)
        {
            FollowedLine line = await lines.NextAsync();
            Assert.Equal($"line {++_last}", line.ToString());
            if (line.IsAfterGap)
            {
                _gaps.Add(_last);
            }
        }
    }
}
