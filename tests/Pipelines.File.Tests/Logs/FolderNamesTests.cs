namespace FilePipelines.Tests;

/// <summary>When the names in a folder are listed again. The clock says how long a listing takes.</summary>
public sealed class FolderNamesTests : FileTests
{
    private readonly SteppingClock _clock = new();
    private readonly FolderNames _names;

    public FolderNamesTests() => _names = new FolderNames(_folder.Path, _clock);

    [Fact]
    public void Look_ListingTakesLong_TheNextOneComesAfterTwentyTimesThat()
    {
        Assert.True(Look(0, seconds: 0.1));
        _folder.File("new.log", "1\n"u8.ToArray());
        Assert.False(Look(2));
        Assert.True(Look(2.1));
        Assert.True(_names.Contains("new.log"));
    }

    [Fact]
    public void Look_IsSure_ListsWithoutAPauseBeforeIt()
    {
        Assert.True(Look(0, seconds: 0.1));
        Assert.True(Look(0.1, isSure: true, seconds: 0.1));
        Assert.False(Look(2.1));
        Assert.True(Look(2.2));
    }

    [Fact]
    public void Look_ListingTakesVeryLong_ThePauseIsTenSeconds()
    {
        Assert.True(Look(0, seconds: 60));
        Assert.False(Look(69));
        Assert.True(Look(70));
    }

    /// <summary>A failure that only a sure look has met is told until the folder is listed.</summary>
    [Fact]
    public void Look_FailedInThePause_TriesAgainWithoutOne()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Links take a privilege there.");
        Assert.True(Look(0, seconds: 60));
        Directory.Delete(_folder.Path);
        File.CreateSymbolicLink(_folder.Path, new string('x', 300));
        Assert.False(Look(61, isSure: true));
        Assert.NotNull(_names.Failure);
        File.Delete(_folder.Path);
        Directory.CreateDirectory(_folder.Path);
        Assert.True(Look(62));
        Assert.Null(_names.Failure);
    }

    /// <summary>A time in whole units of 10 ms may be that of FAT, whose tick is 2 s. A finer one is of a clock that ticks often.</summary>
    [Theory]
    [InlineData(0, 2.6), InlineData(1, 0.3)]
    public void Look_AfterAChange_ListsUntilThatIsOlderThanTheLongestTick(int microseconds, double older)
    {
        Directory.SetLastWriteTimeUtc(_folder.Path, DateTime.UtcNow.Date.AddMicroseconds(microseconds));
        Assert.True(Look(0));
        Assert.True(Look(older / 2));

        // A change just before that tick is over may have left no trace.
        Assert.True(Look(older, seconds: 0.1));
        Assert.False(Look(60));
    }

    [Fact]
    public void Look_FolderGetsItsTimeBackAfterAChange_IsListed()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Only there a folder has a time that nobody can set.");
        Assert.True(Look(0));
        Assert.True(Look(60));

        // As rsync -t and tar do.
        DateTime time = Directory.GetLastWriteTimeUtc(_folder.Path);
        _folder.File("log", []);
        Directory.SetLastWriteTimeUtc(_folder.Path, time);
        Assert.True(Look(120));
        Assert.True(_names.Contains("log"));
    }

    [Fact]
    public void Look_FolderMayNotBeListedForATime_IsListedWhenItMay()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "The permissions of a thread are those of Linux.");
        _folder.File("log", []);
        File.SetUnixFileMode(_folder.Path, UnixFileMode.UserExecute | UnixFileMode.GroupExecute | UnixFileMode.OtherExecute);
        AsNobody(() => Assert.True(Look(0)));

        // By now a change of the folder would be older than any tick.
        AsNobody(() => Assert.True(Look(60)));
        Assert.False(_names.Contains("log"));
        Assert.IsType<UnauthorizedAccessException>(_names.Failure);
        File.SetUnixFileMode(_folder.Path, (UnixFileMode)0b111_111_111);
        AsNobody(() => Assert.True(Look(120)));
        Assert.Null(_names.Failure);
        Assert.True(_names.Contains("log"));
    }

    /// <summary>Not each for itself, and not again because another one has: there is one look for all of them per interval.</summary>
    [Fact]
    public async Task Listings_OfManyFollowersOfOneFolder_AreThoseOfOne()
    {
        const int Count = 20;
        const int Rotations = 5;
        TimeSpan interval = TimeSpan.FromSeconds(0.5);
        ManualClock clock = new();
        QuickOptions options = FollowedLog.Quick with { FollowInterval = interval, TimeProvider = clock };
        FolderNames names = FolderNames.Rent(_folder.Path, options, Ignore);
        List<FollowedLog> logs = [];
        try
        {
            for (int i = 0; i < Count; i++)
            {
                logs.Add(new(_folder.File($"{i}.log", "0\n"u8.ToArray()), options));
                await logs[i].ExpectAsync("0");
            }

            (TimeSpan begun, int listings) = (clock.Elapsed, names.Listings);
            for (int i = 1; i <= Rotations; i++)
            {
                string path = _folder.File("0.log");
                File.Move(path, $"{path}.{i}");
                File.WriteAllText(path, $"{i}\n");
                await clock.AdvanceUntilAsync(logs[0].StepAsync(), interval);
                await logs[0].ExpectAsync($"{i}");
            }

            // A look of one for all, one of the follower whose log is rotated, and until that one has seen the same twice.
            Assert.InRange(names.Listings - listings, 1, (2 * ((clock.Elapsed - begun) / interval)) + (8 * Rotations));
        }
        finally
        {
            foreach (FollowedLog log in logs)
            {
                await log.DisposeAsync();
            }

            names.Return(options, Ignore);
        }

        static void Ignore(FolderNames folder, bool isNews)
        {
            // Only the number of the listings matters here.
        }
    }

    /// <summary>On a thread that has the permissions of a user who owns nothing: setfsuid(2).</summary>
    private static void AsNobody(Action action)
    {
        Exception? error = null;
        Thread thread = new(() =>
        {
            _ = setfsuid(65534);
            error = Record.Exception(action);
        });
        thread.Start();
        thread.Join();
        Assert.Null(error);

        [System.Runtime.InteropServices.DllImport("libc")]
        static extern int setfsuid(uint user);
    }

    /// <summary>Looks at that second. If the folder is listed, that takes so long.</summary>
    private bool Look(double at, bool isSure = false, double seconds = 0)
    {
        (_clock.Now, _clock.Step) = (TimeSpan.FromSeconds(at), TimeSpan.FromSeconds(seconds));
        return _names.Look(isSure);
    }

    /// <summary>Stands still, but for one step after the next question.</summary>
    private sealed class SteppingClock : TimeProvider
    {
        public TimeSpan Now { get; set; }

        public TimeSpan Step { get; set; }

        public override long TimestampFrequency => TimeSpan.TicksPerSecond;

        public override long GetTimestamp()
        {
            long now = Now.Ticks;
            (Now, Step) = (Now + Step, TimeSpan.Zero);
            return now;
        }
    }
}
