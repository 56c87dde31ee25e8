using Microsoft.Extensions.Caching.Distributed;

namespace FilePipelines.AspNetCore.Tests.Caching;

/// <summary>An entry that is replaced while another request reads the old one.</summary>
public sealed class ReplacedEntryTests : IDisposable
{
    private readonly string _folder = Directory.CreateTempSubdirectory("cache-").FullName;
    private readonly AskedTime _time = new();
    private readonly ServiceProvider _provider;
    private readonly IDistributedCache _cache;

    public ReplacedEntryTests()
    {
        ServiceCollection services = new();
        services.AddSingleton<TimeProvider>(_time);
        services.AddFileDistributedCache(options => options.Folder = _folder);
        _provider = services.BuildServiceProvider();
        _cache = _provider.GetRequiredService<IDistributedCache>();
    }

    public void Dispose()
    {
        _provider.Dispose();
        Directory.Delete(_folder, recursive: true);
    }

    [Theory]
    [InlineData(false, 1, 60)]
    [InlineData(true, 1, 60)]
    [InlineData(false, 60, 1)]
    [InlineData(true, 60, 1)]
    public async Task Entry_ThatReplacesOneThatIsRead_KeepsItsOwnExpiration(bool isAsynchronous, int oldMinutes, int newMinutes)
    {
        Set(1, oldMinutes);
        _time.WhenAsked = () => Set(2, newMinutes);
        Assert.Equal([1], await GetAsync(isAsynchronous));
        _time.Advance(TimeSpan.FromMinutes(10));
        Assert.Equal(newMinutes > 10 ? [2] : null, await GetAsync(isAsynchronous));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Entry_ThatReplacesOneThatHasExpired_Stays(bool isAsynchronous)
    {
        Set(1, minutes: 1);
        _time.Advance(TimeSpan.FromMinutes(2));
        _time.WhenAsked = () => Set(2, minutes: 1);
        Assert.Null(await GetAsync(isAsynchronous));
        Assert.Equal([2], await GetAsync(isAsynchronous));
    }

    private void Set(byte value, int minutes)
        => _cache.Set("key", [value], new DistributedCacheEntryOptions { SlidingExpiration = TimeSpan.FromMinutes(minutes) });

    private async Task<byte[]?> GetAsync(bool isAsynchronous)
        => isAsynchronous ? await _cache.GetAsync("key", TestContext.Current.CancellationToken) : _cache.Get("key");

    // A reader asks for the time when it has read the entry, and not yet looked at its times.
    private sealed class AskedTime : TimeProvider
    {
        private DateTimeOffset _now = new(2026, 1, 2, 3, 4, 5, TimeSpan.Zero);

        internal Action? WhenAsked { get; set; }

        public override DateTimeOffset GetUtcNow()
        {
            Action? asked = WhenAsked;
            WhenAsked = null;
            asked?.Invoke();
            return _now;
        }

        // No look through the folder, which would ask, too.
        public override ITimer CreateTimer(TimerCallback callback, object? state, TimeSpan dueTime, TimeSpan period)
            => base.CreateTimer(callback, state, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);

        internal void Advance(TimeSpan time) => _now += time;
    }
}
