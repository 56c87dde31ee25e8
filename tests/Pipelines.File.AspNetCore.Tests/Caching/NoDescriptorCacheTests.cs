using Microsoft.Extensions.Caching.Distributed;

namespace FilePipelines.AspNetCore.Tests.Caching;

/// <summary>A cache whose process has no descriptor left.</summary>
[Collection(nameof(AloneCollection))]
public sealed class NoDescriptorCacheTests : IDisposable
{
    private readonly string _folder = Directory.CreateTempSubdirectory("cache-").FullName;

    public void Dispose() => Directory.Delete(_folder, recursive: true);

    [Fact]
    public async Task Look_ThatNoThreadCanBeStartedFor_IsMadeTheNextTime()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "setrlimit(2).");
        CalledTime time = new();
        ServiceCollection services = new();
        services.AddSingleton<TimeProvider>(time);
        services.AddFileDistributedCache(options => options.Folder = _folder);
        await using ServiceProvider provider = services.BuildServiceProvider();
        IDistributedCache cache = provider.GetRequiredService<IDistributedCache>();
        cache.Set("key", [1], new DistributedCacheEntryOptions { AbsoluteExpirationRelativeToNow = TimeSpan.FromHours(1) });
        string path = Directory.EnumerateFiles(Directory.EnumerateDirectories(_folder, "???").Single()).Single();
        time.Advance(TimeSpan.FromDays(1));
        using (FewDescriptors few = new(spare: 3))
        {
            few.TakeAll();

            // A timer calls it, which would end the application with what it throws.
            time.Look();
        }

        // It may have begun without a descriptor, and then ends soon.
        await Eventually.TrueAsync(() =>
        {
            time.Look();
            return !File.Exists(path);
        });
    }

    private sealed class CalledTime : TimeProvider
    {
        private DateTimeOffset _now = DateTimeOffset.UtcNow;

        internal Action Look { get; private set; } = () => { };

        public override DateTimeOffset GetUtcNow() => _now;

        public override ITimer CreateTimer(TimerCallback callback, object? state, TimeSpan dueTime, TimeSpan period)
        {
            Look = () => callback(state);
            return base.CreateTimer(callback, state, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        }

        internal void Advance(TimeSpan time) => _now += time;
    }
}
