namespace FilePipelines.Tests;

/// <summary>
/// Logs that are rotated, truncated, linked and gone on with in every way that somebody has seen: no line is lost, none comes twice, and a
/// gap is told (<see cref="LogStory"/> says what the steps mean).
/// </summary>
public sealed class LogStoryTests
{
    private const string Old = "mkdir old; names old/{name}.#; ";
    private const string Links = "unix; mkdir pods; ln pods/0 web; ";
    private const string Stopped = "write 1 2; follow; read 1; keep; stop; ";
    private const string StoppedLink = "put pods/0 1 2; follow web; read 1; keep; stop; ";
    private const string First = "mv pods/0 pods/0.20261128-101000; ";
    private const string Second = "mv pods/0 pods/0.20261128-101001; ";
    private const string Many = "write 1-2; follow; whole 1; write 3-5002; ";

    [Theory]
    [InlineData("write 1; follow; read 1; write 2; mv log log.1; write 3; read 2 3; reopen; write 4; whole 4")]
    [InlineData("write 1; follow; read 1; mv log log.1; put log; quiet; pause; write late; read late; append log 2; read 2")]
    [InlineData("put log.2 old; put log.1 older; write 1; follow; read 1; rotate; write 2; read 2")]
    [InlineData("timed; write 1; follow; read 1; tick; put log.7 unpacked; age log.7 7; rotate; tick; put log.9 copy; write 2; read 2; "
        + "quiet")]
    [InlineData("write 1; torn half; follow; read 1; mv log elsewhere; quiet; mv elsewhere log; write way 2; whole halfway 2")]
    [InlineData("write 1; torn torn; follow; read 1; rotate; quiet; write 2; half torn; at 6; keep; read 2; stop; follow; read 2")]
    [InlineData("write 1; follow; read 1; tick; cp log log-20261123; write 2; mv log log.1; reopen; write 3; read 2 3; quiet")]
    [InlineData(Old + "write 1 2; follow; read 1 2; mv log elsewhere; reopen; write 3; read 3")]
    [InlineData("names; write 1 2; follow; read 1 2; mv log elsewhere; reopen; write 3; read 3")]
    [InlineData(Old + "write 1-4; follow; read 1-4; carry log old/log.1; reopen; write 5-8; read 5-8; mv old/log.1 old/log.2; "
        + "carry log old/log.1; reopen; write 9-12; read 9-12; quiet")]
    [InlineData("names {name}-#; write 1; follow; read 1; mv log log-20261122; reopen; write 2; tick; mv log log-2026-11-22_13.59; reopen; "
        + "write 3; read 2 3")]
    [InlineData(Old + "write 1; follow; read 1; mv log old/log.2; reopen; write 2; tick; mv log old/log.1; reopen; write 3; read 2 3")]
    [InlineData(Many + "mv log log.1; reopen; write 5003; pause; read 2-5003; quiet")]
    [InlineData("names {stem}.*.txt; write 1; follow; read 1; mv log log.b.txt; reopen; write 2; tick; mv log log.a.txt; reopen; write 3; "
        + "read 2 3")]
    public Task Rotation(string story) => LogStory.RunAsync(story);

    [Fact]
    public Task Rotation_ManyTimesBetweenTwoLooks()
        => LogStory.RunAsync("write 0; follow; read 0; " + Each(1, 12, "rotate; write {0}; ") + "read 1-12; quiet");

    [Fact]
    public Task Rotation_DeletedAndMadeAgainAtOnce()
        => LogStory.RunAsync("unix; put log 0; follow; read 0; " + Each(1, 20, "rm log; put log line{0}; read line{0}; "));

    [Theory]
    [InlineData("put log.1 old; " + Stopped + "tick; rotate; write 3; follow; read 2 3; quiet; write more; read more")]
    [InlineData(Stopped + "mv log log.1; follow; read 2; quiet; write 3; read 3; reopen; write 4; read 4")]
    [InlineData("put log.1 old; " + Stopped + "tick; rotate; write 3; tick; rotate; write 4; gzip log.2; follow; whole 2 3 4")]
    [InlineData("timed; put log.1 old; " + Stopped + "tick; rotate; write 3; tick; rotate; write 4; rm log.2; follow; gap 3; whole 4")]
    [InlineData("untimed; put log.1 old; " + Stopped + "tick; rotate; write 3; tick; rotate; write 4; rm log.2; follow; gap 4")]
    [InlineData("write 1 2; follow; read 1 2; keep; stop; cut; write 3; follow; gap 3")]
    [InlineData("put log 1 2; mark 2; mv log elsewhere; follow; quiet; mv elsewhere log; whole 2")]
    [InlineData("put log.1 old; put log 1 2; mark 2; mv log elsewhere; follow; quiet; mv elsewhere log; whole 2")]
    [InlineData(Old + "write 1-4; follow; read 1 2; keep; stop; carry log old/log.2; reopen; write 5-8; carry log old/log.1; reopen; "
        + "write 9-12; follow; read 3-12; quiet")]
    [InlineData("write 1; follow; read 1; keep; stop; tick; cp log log-20261123; write 2; mv log log.1; reopen; write 3; follow; read 2 3; "
        + "quiet")]
    [InlineData("unix; write 1-4; follow; read 1 2; keep; stop; tick; mv log log.2; reopen; write 5-8; mv log log.1; age log.1 1; reopen; "
        + "write 9-12; follow; read 3-12; quiet")]
    [InlineData("put log 1-100; follow; read 1 2; keep; stop; put log 501-600; follow; gap 501")]
    [InlineData("put log 1-100; follow; read 1 2; keep; stop; put log 501-600; mv log log.1; put log 7; follow; gap 501")]
    public Task Checkpoint(string story) => LogStory.RunAsync(story);

    [Fact]
    public Task Checkpoint_BehindManyRotations()
        => LogStory.RunAsync("put log.1 old; " + Stopped + Each(3, 7, "tick; rotate; write {0}; ") + "follow; read 2-7; quiet");

    /// <summary>Not log.1, then log.2: the numbers increase.</summary>
    [Fact]
    public Task Checkpoint_NumbersThatIncrease()
        => LogStory.RunAsync(
            "write 0; follow; read 0; keep; stop; " + Each(1, 11, "tick; mv log log.{0}; reopen; write {0}; ")
            + "follow; read 1-11; quiet");

    /// <summary>The clock of the system was set back between any two rotations, so the times of the files say nothing.</summary>
    [Fact]
    public Task Checkpoint_ClockSetBackAtEachRotation()
        => LogStory.RunAsync("put log 0 1; follow; read 0; keep; stop; " + Each(2, 6, "age log {0}; rotate; put log {0}; ")
            + "follow; read 1-6; quiet");

    /// <summary>What only copies hold is read there. The last lines of a copy that more was read of than it has are no gap.</summary>
    [Theory]
    [InlineData("write 1 2; torn half; follow; read 1 2; quiet; cp log log.1; cut; half half; write 3; whole 3; at 2; write 4; whole 4; "
        + "rotate; write 5; read 5")]
    [InlineData("write 000 001; follow; read 000 001; quiet; cut; write 002 003 004; read 002 003 004")]
    [InlineData("write 000 001; follow; read 000 001; cut; write 0002 0003 0004; gap 0002; read 0003 0004")]
    [InlineData("torn half; follow; quiet; cut; write 0002 0003; half half; gap 0002; read 0003")]
    [InlineData("write 000 001; mark 8; follow; quiet; cut; write 0002 0003; gap 0002; read 0003")]
    [InlineData(Many + "copycut log.1; write 5003-5012; mv log.1 log.2; put log.1; read 2-2500; cp log log.1; read 2501-5012; quiet")]
    [InlineData("write 1-100; follow; read 1-100; write 101-110; copycut log.1; write 111-120; mv log.1 log.2; cp log log.1; read 101-120; "
        + "write 121; read 121; cut; write 122; read 122; quiet")]
    [InlineData("write 1-3; follow; read 1-3; copycut log.1; quiet; put copy 4-7; over copy log.1; write 8; read 4-8; quiet")]
    [InlineData("write 1-3; follow; read 1-3; copycut log.1; quiet; put copy 4-7; mv log.1 log.2; mv copy log.1; write 8; read 4-8; quiet")]
    [InlineData(Many + "copycut log.1; write 5003-10002; whole 2-2500; copycut log.1; write 10003-10007; whole 2501-10007; quiet")]
    [InlineData(Many + "copycut log-20261120; write 5003-10002; whole 2-2500; copycut log-20261121; write 10003-10007; whole 2501-10007; "
        + "quiet")]
    [InlineData(Many + "copycut log.1; write 5003-10002; whole 2-2500; copycut log.1; write 10003-10007; rm log.2; "
        + "whole 2501-5002; gap 5003; whole 5004-10007; quiet")]
    [InlineData("write 1-100; follow; read 1-100; write 101-110; copycut log.1; read 101-105; keep; stop; write 111-120; mv log.1 log.2; "
        + "cp log log.1; follow; read 106-120; quiet")]
    [InlineData("write 1-100; follow; read 1-100; write 101-110; copycut log.1; read 101-105; keep; stop; write 111-120; mv log.1 log.2; "
        + "cp log log.1; cut; write 121-130; follow; read 106-130; quiet")]
    public Task Truncation(string story) => LogStory.RunAsync(story);

    [Theory]
    [InlineData("log.1")]
    [InlineData("log-2026112{0}")]
    public async Task Truncation_SeveralTimesBetweenTwoLooks(string copy)
    {
        foreach (int times in (int[])[1, 4])
        {
            await LogStory.RunAsync("write 1-100; follow; whole 1-100; "
                + Each(1, times, $"write {{0}}01-{{0}}10; copycut {copy}; ") + "write 901-905; "
                + Each(1, times, "whole {0}01-{0}10; ") + "whole 901-905; quiet");
        }
    }

    [Theory]
    [InlineData("", "")]
    [InlineData("stop; ", "follow; ")]
    public async Task Truncation_WhileItIsFollowedOrNot(string stop, string follow)
    {
        string end = new('.', 200);
        await LogStory.RunAsync($"write 1-100; follow; read 1-100; keep; {stop}write 101-110; cp log log.1; cut; write 111-115; {follow}"
            + "whole 101-115");

        // They differ only at their beginning.
        await LogStory.RunAsync($"write 1{end} 2{end}; follow; read 1{end} 2{end}; keep; {stop}write 3{end}; cp log log.1; cut; "
            + $"write 4{end} 5{end} 6{end}; {follow}read 3{end} 4{end} 5{end} 6{end}");

        // More was read than the copy has.
        string read = $"write 1-500; follow; read 1-500; cp log log.1; write 501-505; read 501-505; keep; {stop}cut; ";
        await LogStory.RunAsync(read + $"write 506-510; {follow}read 506-510; quiet");
        await LogStory.RunAsync(read + "write 506-515; copycut log.1; write 516-525; copycut log.1; write 526-530; "
            + $"{follow}read 506-530; quiet");
    }

    /// <summary>A log whose name is a link, as in Kubernetes: its files rotate beside the target.</summary>
    [Theory]
    [InlineData("put pods/0 1; follow web; read 1; " + First + "put pods/0 2; " + Second + "put pods/0 3; read 2 3; quiet")]
    [InlineData(StoppedLink + First + "put pods/0 3; follow web; whole 2 3; quiet")]
    [InlineData(StoppedLink + First + "put pods/0 3; " + Second + "put pods/0 4; follow web; whole 2 3 4; quiet")]
    [InlineData("put pods/0 1; follow web; read 1; append pods/0 2; put pods/1 3; ln pods/1 web; read 2 3; "
        + "mv pods/1 pods/1.20261128-101000; "
        + "put pods/1 4; mv pods/1 pods/1.20261128-101001; put pods/1 5; read 4 5; append pods/1 6; read 6; quiet")]
    [InlineData(StoppedLink + "put pods/1 3; ln pods/1 web; follow web; gap 3")]
    [InlineData(StoppedLink + "put pods/1 3; ln pods/1 web; rm pods/0; follow web; gap 3")]
    [InlineData("clock; put pods/0 1; follow web; read 1; tick; " + First + "put pods/0 2; " + Second + "put pods/0 3; tick; put pods/1 4; "
        + "ln pods/1 web; whole 2-4")]
    [InlineData("clock; put pods/0 1; follow web; read 1; tick; append pods/0 2; put pods/1 3; ln pods/1 web; tick; "
        + "mv pods/1 pods/1.20261128-101000; put pods/1 4; whole 2-4")]
    public Task Link(string story) => LogStory.RunAsync(Links + story);

    private static string Each(int first, int last, string steps)
        => string.Concat(Enumerable.Range(first, last - first + 1).Select(i => steps.Replace("{0}", $"{i}", StringComparison.Ordinal)));
}
