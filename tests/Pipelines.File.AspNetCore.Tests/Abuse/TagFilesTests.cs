using System.Diagnostics.Metrics;

namespace FilePipelines.AspNetCore.Tests.Abuse;

/// <summary>What the folder of a cache gathers, and what others put there: it stays bounded, and a look through it ends nothing.</summary>
public sealed class TagFilesTests : InARoot
{
    private const long Size = 1024 * 1024;

    private readonly ManualTime _time = new();

    private string Folder => Path.Combine(_root, "cache");

    [Fact]
    public async Task Tags_ThatWereRemoved_TakeABoundedPart_AndNoEntryComesBack()
    {
        using FileCache cache = Make();
        await SetAsync(cache, "before", "tag");
        await SetAsync(cache, "removed", "gone");
        await SetAsync(cache, "plain");
        await cache.EvictByTagAsync("gone", _stop);
        for (int i = 0; i < 80; i++)
        {
            await cache.EvictByTagAsync($"{i}", _stop);
        }

        Assert.Equal(81, Tags());
        cache.Look();

        // A quarter of the size is 64 blocks. What is left is the generation of all tagged entries.
        Assert.Equal(1, Tags());
        Assert.Equal((false, false), (await IsThereAsync(cache, "removed"), await IsThereAsync(cache, "before")));
        Assert.True(await IsThereAsync(cache, "plain"));

        await SetAsync(cache, "after", "tag");
        Assert.True(await IsThereAsync(cache, "after"));
        await cache.EvictByTagAsync("tag", _stop);
        Assert.False(await IsThereAsync(cache, "after"));
    }

    [Fact]
    public async Task FewTags_Stay()
    {
        using FileCache cache = Make();
        await SetAsync(cache, "a", "tag");
        await cache.EvictByTagAsync("tag", _stop);
        await SetAsync(cache, "b", "tag");
        cache.Look();
        Assert.Equal((1, false, true), (Tags(), await IsThereAsync(cache, "a"), await IsThereAsync(cache, "b")));
    }

    [Fact]
    public async Task Entry_ThatExpiresBehind2038_IsThereUntilThen()
    {
        using FileCache cache = Make();
        DateTime late = new(2050, 1, 1, 0, 0, 0, DateTimeKind.Utc);
        await cache.SetAsync("long", Body, ReadOnlyMemory<string>.Empty, late, TimeSpan.Zero, _stop);
        await cache.SetAsync("ever", Body, ReadOnlyMemory<string>.Empty, DateTime.MaxValue, TimeSpan.Zero, _stop);
        DateTime written = File.GetLastWriteTimeUtc(Entries().First());
        Assert.SkipWhen(written.Year <= 2038, "The file system knows no later times.");
        _time.Advance(new DateTime(2040, 1, 1, 0, 0, 0, DateTimeKind.Utc) - DateTime.UtcNow);
        cache.Look();
        Assert.Equal((true, true), (await IsThereAsync(cache, "long"), await IsThereAsync(cache, "ever")));
        _time.Advance(TimeSpan.FromDays(366 * 11));
        cache.Look();
        Assert.Equal((false, true), (await IsThereAsync(cache, "long"), await IsThereAsync(cache, "ever")));
    }

    [Fact]
    public async Task Entry_WhoseKeyAndTagsAreTooLong_IsNotStored_AndNoError()
    {
        TestLog log = new();
        using FileCache cache = Make(log);
        string key = new('k', 600_000);
        await SetAsync(cache, key);
        cache.Set(key, Body, DateTime.MaxValue, TimeSpan.Zero);
        Assert.False(await IsThereAsync(cache, key));
        Assert.Equal(2, log.Lines.Count(line => line.Contains("too long for the cache", StringComparison.Ordinal)));
    }

    [Fact]
    public async Task Root_ThatIsRemoved_IsMadeAgainWithTheSameRights()
    {
        using FileCache cache = Make();
        Directory.Delete(Folder, recursive: true);
        cache.Look();
        await SetAsync(cache, "a");
        await cache.EvictByTagAsync("tag", _stop);
        Assert.True(await IsThereAsync(cache, "a"));
        if (!OperatingSystem.IsWindows())
        {
            Assert.Equal(UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute, File.GetUnixFileMode(Folder));
        }
    }

    [Fact]
    public async Task DamagedEntry_IsAMiss_AndOneWarning()
    {
        TestLog log = new();
        using FileCache cache = Make(log);
        await SetAsync(cache, "a");
        string path = Entries().Single();
        await File.WriteAllBytesAsync(path, new byte[100], _stop);
        Assert.False(await IsThereAsync(cache, "a"));
        Assert.False(File.Exists(path));
        Assert.Single(log.Lines, line => line.Contains("is damaged", StringComparison.Ordinal));
    }

    [Fact]
    public void Look_OverATimeThatNobodyCanHold_RemovesTheFile()
    {
        string folder = OddTimes.NewFolder();
        try
        {
            using FileCache cache = new(
                new FileCacheOptions { Folder = folder, MaxSize = Size }, new NoTimers(_time), new FileCacheMetrics(null));
            string path = Path.Combine(Directory.CreateDirectory(Path.Combine(folder, "abc")).FullName, new string('a', 32));
            File.WriteAllText(path, "x");
            OddTimes.Set(path, "@300000000000");
            cache.Look();
            Assert.False(File.Exists(path));
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task LoggerOrListener_ThatThrows_EndsNoLook(bool isLogger)
    {
        using MeterListener listener = new();
        using Meters meters = new();
        bool isCalled = false;
        if (!isLogger)
        {
            listener.InstrumentPublished = (instrument, self) =>
            {
                if (instrument.Meter.Scope == meters)
                {
                    self.EnableMeasurementEvents(instrument);
                }
            };
            listener.SetMeasurementEventCallback<long>((_, _, _, _) =>
            {
                isCalled = true;
                throw new InvalidOperationException("A listener.");
            });
            listener.Start();
        }

        using FileCache cache = new(
            new FileCacheOptions { Folder = Folder, MaxSize = Size }, new NoTimers(_time), new FileCacheMetrics(meters),
            isLogger ? new Rude(() => isCalled = true) : null);
        await SetAsync(cache, "a");
        await SetAsync(cache, "b");
        Assert.True(await IsThereAsync(cache, "a"));
        Assert.False(await IsThereAsync(cache, "c"));
        _time.Advance(TimeSpan.FromDays(10));
        if (isLogger)
        {
            // What cannot be locked is told.
            Directory.CreateDirectory(Path.Combine(Folder, "lock"));
        }

        cache.Look();
        Assert.True(isCalled);
        Assert.Equal(isLogger ? 2 : 0, Entries().Count(path => Path.GetFileName(path) != "lock"));
    }

    private static ReadOnlySequence<byte> Body => new("body"u8.ToArray());

    private FileCache Make(ILogger? log = null)
        => new(new FileCacheOptions { Folder = Folder, MaxSize = Size }, new NoTimers(_time), new FileCacheMetrics(null), log);

    private IEnumerable<string> Entries()
        => Directory.EnumerateFiles(Folder, "????????????????????????????????", SearchOption.AllDirectories);

    private int Tags() => Directory.EnumerateFiles(Path.Combine(Folder, "tags")).Count();

    private ValueTask SetAsync(FileCache cache, string key, params string[] tags)
        => cache.SetAsync(key, Body, tags, _time.GetUtcNow().UtcDateTime.AddDays(1), TimeSpan.Zero, _stop);

    private ValueTask<bool> IsThereAsync(FileCache cache, string key) => cache.TryGetAsync(key, this, static (_, _) => { }, _stop);

    /// <summary>Looks come only when a test asks for them.</summary>
    private sealed class NoTimers(TimeProvider time) : TimeProvider
    {
        public override DateTimeOffset GetUtcNow() => time.GetUtcNow();

        public override ITimer CreateTimer(TimerCallback callback, object? state, TimeSpan dueTime, TimeSpan period)
            => base.CreateTimer(callback, state, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
    }

    private sealed class Meters : IMeterFactory
    {
        private Meter? _meter;

        public Meter Create(MeterOptions options) => _meter = new Meter(options.Name, options.Version, options.Tags, scope: this);

        public void Dispose() => _meter?.Dispose();
    }

    private sealed class Rude(Action called) : ILogger
    {
        public IDisposable? BeginScope<TState>(TState state) where TState : notnull => null;

        public bool IsEnabled(LogLevel logLevel) => true;

        public void Log<TState>(
            LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
        {
            called();
            throw new InvalidOperationException("A logger.");
        }
    }
}
