namespace FilePipelines.Tests;

/// <summary>A log that is truncated while its caller holds a batch, so that the follower does not read.</summary>
public sealed class LogTruncationTests : FileTests
{
    /// <summary>The log is shorter than before, or longer.</summary>
    [Theory]
    [InlineData(1), InlineData(4)]
    public async Task Cut_AgainWhileTheCallerHasABatch_ReadsTheCopyThatIsLeft(int count)
    {
        using GrowingFile file = new(_folder.File("log"), "a1\na2\na3\n");
        await using FollowedLog lines = new(_folder.File("log*"));
        await lines.ExpectAsync("a1", "a2", "a3");
        string[] cut = [.. Enumerable.Range(1, count).Select(static i => $"c{i}")];
        await CutAsync(file, lines, ["b1", "b2", "b3", "b4"], cut);
        await lines.ExpectAsync("b1");
        Assert.True(lines.Current.IsAfterGap);
        await lines.ExpectAsync("b2", "b3", "b4");
        Assert.False(lines.Current.IsAfterGap);
        await lines.ExpectAsync(cut);
        await lines.ExpectNothingAsync();
    }

    /// <summary>Each file begins with the same line.</summary>
    [Theory]
    [InlineData("header", false)]
    [InlineData("header", true)]
    [InlineData("other", true)]
    public async Task Cut_WhileABatchIsHeldAndTheNextBeginsAsTheLast_ItsCopyIsRead(string again, bool isSeen)
    {
        using GrowingFile file = new(_folder.File("log"), "header\n");
        await using FollowedLog lines = new(_folder.File("log*"));
        await lines.ExpectAsync("header");
        _ = lines.StepAsync();
        file.Append("a1\n");
        await lines.ExpectAsync("a1");
        if (isSeen)
        {
            _folder.File("log.5", "stranger\n"u8.ToArray());
            await SeenAsync(lines, "logs1");
        }

        await CutAsync(file, lines, [again, "x1", "x2"], [again, "b1", "b2"]);
        await lines.ExpectAsync(again, "x1", "x2", again, "b1", "b2");
    }

    /// <summary>The first copy is gone, log.1 is the second. The follower has seen it when the task completes.</summary>
    private Task CutAsync(GrowingFile file, FollowedLog lines, string[] copied, string[] written)
    {
        file.Cut(0);
        File.WriteAllLines(_folder.File("copy"), copied);
        File.Move(_folder.File("copy"), file.Path + ".1");
        file.Append(string.Join('\n', written) + "\n");
        return SeenAsync(lines, "logs2");
    }

    /// <summary>When it has opened another log, it has seen what came before, too.</summary>
    private async Task SeenAsync(FollowedLog lines, string name)
    {
        long files = lines.Statistics.Files;
        _folder.File(name, []);
        await Eventually.TrueAsync(() => lines.Statistics.Files > files);
    }
}
