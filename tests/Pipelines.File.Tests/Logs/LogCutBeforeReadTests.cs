namespace FilePipelines.Tests;

/// <summary>
/// A log that is copied and truncated between the search that has found the place in it and the tail's first look at it: what the copy has
/// behind that place comes, then the log from its beginning, and nothing twice.
/// </summary>
public sealed class LogCutBeforeReadTests : FileTests
{
    private const int Copied = 400;

    private readonly string _log;
    private readonly LogFollowerCounts _counts = new(all: null);

    public LogCutBeforeReadTests() => _log = _folder.File("log");

    /// <summary>The log is shorter than the place, as long, or longer, without the rest of the copy or with it.</summary>
    [Theory]
    [InlineData(2, 1), InlineData(2, Copied), InlineData(200, 1), InlineData(200, 0), InlineData(200, 200), InlineData(200, 201)]
    [InlineData(200, 2 * Copied)]
    public async Task Checkpoint_CutBeforeTheFirstRead_GoesOnInTheCopy(int read, int written)
    {
        using GrowingFile file = new(_log, Lines('a', Copied));
        await using Followed lines = new(this, new QuickOptions { Checkpoint = Checkpoint(read) });
        CopyTruncate(file, written);
        await lines.ExpectAsync([.. Numbered('a', read, Copied), .. Numbered('b', 0, written)], gaps: 0);
    }

    [Theory]
    [InlineData(1), InlineData(2 * Copied)]
    public async Task Checkpoint_CutBeforeTheFirstReadAndTheCopyIsCompressed_GoesOnInTheCopy(int written)
    {
        using GrowingFile file = new(_log, Lines('a', Copied));
        await using Followed lines = new(this, new QuickOptions { Checkpoint = Checkpoint(200) });
        CopyTruncate(file, written);
        LogStory.Compress(_log + ".1");
        await lines.ExpectAsync([.. Numbered('a', 200, Copied), .. Numbered('b', 0, written)], gaps: 0);
    }

    [Theory]
    [InlineData(1), InlineData(2 * Copied)]
    public async Task Checkpoint_CutBeforeTheFirstReadAndThereIsNoCopy_BeginsAgainAndTells(int written)
    {
        using GrowingFile file = new(_log, Lines('a', Copied));
        await using Followed lines = new(this, new QuickOptions { Checkpoint = Checkpoint(200) });
        file.Cut(0);
        file.Append(Lines('b', written));
        await lines.ExpectAsync(Numbered('b', 0, written), gaps: 1);
    }

    /// <summary>Lines of before that nobody has asked for do not come, and all that were written since do.</summary>
    [Theory]
    [InlineData(0, 1), InlineData(0, 2 * Copied), InlineData(10, 50), InlineData(10, 2 * Copied)]
    public async Task LastLines_CutBeforeTheFirstRead_GoesOnInTheCopy(int last, int written)
    {
        using GrowingFile file = new(_log, Lines('a', Copied - 5));
        await using Followed lines = new(this, new QuickOptions { LastLines = last });
        file.Append(string.Concat(Numbered('a', Copied - 5, Copied).Select(static line => line + "\n")));
        CopyTruncate(file, written);
        await lines.ExpectAsync([.. Numbered('a', Copied - 5 - last, Copied), .. Numbered('b', 0, written)], gaps: 0);
    }

    private static string[] Numbered(char kind, int first, int end)
        => [.. Enumerable.Range(first, end - first).Select(i => $"{kind} {i:D8}")];

    private static string Lines(char kind, int count) => string.Concat(Numbered(kind, 0, count).Select(static line => line + "\n"));

    private void CopyTruncate(GrowingFile file, int written)
    {
        File.Copy(_log, _log + ".1");
        file.Cut(0);
        file.Append(Lines('b', written));
    }

    /// <summary>That of a follower which has read so many lines of the log.</summary>
    private FileCheckpoint Checkpoint(int lines)
    {
        using LogFile file = LogFile.Open(LogName.TryLook(_log)!.Value);
        long offset = lines * 11;
        return new FileCheckpoint(file.Identity, offset) { ContentHash = file.HashAt(offset, CancellationToken.None).Hash };
    }

    /// <summary>The parts of a follower, whose search and tail go on one after the other. The search has taken place.</summary>
    private sealed class Followed : IAsyncDisposable
    {
        private readonly LogCutBeforeReadTests _test;
        private readonly CancellationTokenSource _stop = new();
        private readonly LogSet _set;
        private readonly LogNames _names;
        private readonly LogTail _tail;

        public Followed(LogCutBeforeReadTests test, LogFollowerOptions options)
        {
            _test = test;
            BatchLimits limits = new(64, 1000, TimeSpan.Zero);
            _set = new LogSet([test._log], options, test._counts, limits);
            _names = new LogNames(test._log, options, options.Checkpoint, isLate: false);
            _tail = new LogTail(_set, _names, options, test._counts, limits, _stop.Token);
            _names.Search();
        }

        /// <summary>These are the lines, and no more.</summary>
        public async Task ExpectAsync(string[] expected, int gaps)
        {
            List<string> seen = [];
            int told = 0;
            FollowedLine[] lines = [];
            Loan loan = new();
            while (seen.Count < expected.Length)
            {
                _tail.Look();
                Task<bool> given = _set.WaitAsync(_test._stop).AsTask();
                if (await Task.WhenAny(given, _tail.Running).WaitAsync(Eventually.Limit, _test._stop) != given && !given.IsCompleted)
                {
                    _names.Search();
                    continue;
                }

                Assert.True(await given);
                Assert.True(_set.TryTake(out LogTail? tail));
                FollowedBatch batch = tail.Take(ref lines, loan);
                seen.AddRange(batch.Lines.Select(static line => line.ToString()));
                told += batch.Lines.Count(static line => line.IsAfterGap);
                tail.OnReturned();
            }

            Assert.Equal(expected, seen);
            Assert.Equal(gaps, told);
        }

        public async ValueTask DisposeAsync()
        {
            await _stop.CancelAsync();
            _tail.Stop();
            await _tail.Running;
            _tail.Dispose();
            await _set.DisposeAsync();
            _stop.Dispose();
        }
    }
}
