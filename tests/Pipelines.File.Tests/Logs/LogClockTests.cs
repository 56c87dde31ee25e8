namespace FilePipelines.Tests;

/// <summary>LogFollowerOptions.TimeProvider is the clock for whatever a follower waits for.</summary>
public sealed class LogClockTests : FileTests
{
    private static readonly TimeSpan s_minute = TimeSpan.FromMinutes(1);
    private static readonly TimeSpan s_hour = TimeSpan.FromHours(1);

    private readonly ManualClock _clock = new();

    [Fact]
    public async Task QuietTime_IsThatOfTheClock()
    {
        using GrowingFile file = new(_folder.File("log"), "1\n");
        await using FollowedLog lines = new(
            file.Path, FollowedLog.Quick with { TimeProvider = _clock, FollowInterval = s_minute, QuietTime = s_hour });
        await lines.ExpectAsync("1");
        File.Move(file.Path, file.Path + ".1");
        file.Reopen();
        file.Append("2\n");
        await lines.ExpectNothingAsync();
        await _clock.AdvanceUntilAsync(lines.StepAsync(), s_minute);
        Assert.True(_clock.Elapsed >= s_hour, $"{_clock.Elapsed}");
        await lines.ExpectAsync("2");
    }

    [Fact]
    public async Task MaxDelay_IsThatOfTheClock()
    {
        string log = _folder.File("log", "1\n"u8.ToArray());
        await using IAsyncEnumerator<FollowedBatch> batches = new LogFollower(log, FollowedLog.Quick with { TimeProvider = _clock })
            .ReadBatchesAsync(100, 1000, s_hour, _stop).GetAsyncEnumerator(_stop);
        Task<bool> batch = batches.MoveNextAsync().AsTask();
        await _clock.AdvanceUntilAsync(batch, s_minute);
        Assert.True(_clock.Elapsed >= s_hour, $"{_clock.Elapsed}");
        Assert.True(await batch);
        Assert.Equal("1", Assert.Single(batches.Current.Lines).ToString());
    }

    [Fact]
    public async Task Search_ALogComesWhileOthersAreListedAgain_IsFound()
    {
        // The logs of the second folder are folders, so that each listing of them calls OnUnreadable, within the search.
        string folder = Directory.CreateDirectory(_folder.File("1")).FullName;
        string[] bad = [.. ((string[])["a", "b", "c"]).Select(name => _folder.File(Path.Combine("2", name)))];
        Array.ForEach(bad, static path => Directory.CreateDirectory(path));
        HashSet<string> seen = [];
        LogFollower follower = new([Path.Combine(folder, "*.log"), .. bad], FollowedLog.Quick with
        {
            TimeProvider = _clock,
            FollowInterval = s_minute,
            RotatedNames = ["../1/{name}.#"],
            OnUnreadable = (path, _) =>
            {
                // Those after it have changed, so the folder of the rotated files is listed again: first with the new log, and then when
                // its change is older than any tick.
                if (seen.Add(path))
                {
                    if (path == bad[0])
                    {
                        File.WriteAllText(Path.Combine(folder, "new.log"), "1\n");
                    }
                    else
                    {
                        _clock.Advance(TimeSpan.FromSeconds(3));
                    }

                    foreach (string other in bad.Where(other => string.CompareOrdinal(other, path) > 0))
                    {
                        Directory.Move(other, Path.Combine(_folder.Path, "old" + seen.Count + Path.GetFileName(other)));
                        Directory.CreateDirectory(other);
                    }
                }
            },
        });
        await using IAsyncEnumerator<FollowedLine> lines = follower.ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        Task<bool> next = lines.MoveNextAsync().AsTask();
        await _clock.AdvanceUntilAsync(next, s_minute);
        Assert.True(await next);
        Assert.Equal("1", lines.Current.ToString());
    }

    [Fact]
    public async Task IdleTimeout_IsThatOfTheClock()
    {
        string log = _folder.File("log", "1\n"u8.ToArray());
        LogFollower follower = new(log, FollowedLog.Quick with { TimeProvider = _clock, IdleTimeout = s_hour });
        await using IAsyncEnumerator<FollowedLine> lines = follower.ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        Assert.True(await GrowingFile.Bounded(lines.MoveNextAsync()));
        Task<bool> next = lines.MoveNextAsync().AsTask();
        await _clock.AdvanceUntilAsync(next, s_minute);
        Assert.True(_clock.Elapsed >= s_hour, $"{_clock.Elapsed}");
        Assert.False(await next);
    }
}
