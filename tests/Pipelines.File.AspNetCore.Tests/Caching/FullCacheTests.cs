using Microsoft.AspNetCore.OutputCaching;
using Microsoft.Extensions.Caching.Distributed;

namespace FilePipelines.AspNetCore.Tests.Caching;

/// <summary>Caches on a file system that is full.</summary>
public sealed class FullCacheTests : InACache
{
    private const int EntryLength = 100_000;
    private static readonly TimeSpan s_day = TimeSpan.FromDays(1);

    private protected override string Folder => _root;

    public override async ValueTask InitializeAsync()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Environment.IsPrivilegedProcess, "Only root mounts a small file system.");
        Assert.SkipUnless(
            await RunAsync("mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", Folder) == 0,
            "A file system cannot be mounted here.");
    }

    public override async ValueTask DisposeAsync()
    {
        _ = await RunAsync("umount", "-l", Folder);
        await base.DisposeAsync();
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Set_WithoutRoom_RemovesTheOldestEntries_AndGoesOn(bool isAsynchronous)
    {
        IDistributedCache cache = Distributed();
        for (int i = 0; i < 100; i++)
        {
            // The age of an entry is what decides.
            Time.Advance(TimeSpan.FromHours(1));
            DistributedCacheEntryOptions options = new() { AbsoluteExpirationRelativeToNow = TimeSpan.FromDays(365) };
            if (isAsynchronous)
            {
                await cache.SetAsync($"{i}", BodyOf(i), options, _stop);
            }
            else
            {
                cache.Set($"{i}", BodyOf(i), options);
            }

            Assert.Equal(BodyOf(i), cache.Get($"{i}"));
            Assert.Equal(i == 0 ? null : BodyOf(i - 1), cache.Get($"{i - 1}"));
        }

        Assert.Null(cache.Get("0"));
        Assert.InRange(Enumerable.Range(0, 100).Count(i => cache.Get($"{i}") is not null), 20, 41);
    }

    [Fact]
    public async Task Set_OfManyAtOnce_WithoutRoom_FindsRoomForAll()
    {
        IDistributedCache cache = Distributed();
        for (int i = 0; i < 38; i++)
        {
            cache.Set($"old {i}", BodyOf(i), new DistributedCacheEntryOptions());
        }

        TakeTheRest();
        Time.Advance(s_day);
        await Parallel.ForAsync(0, 8, _stop, async (i, stop) => await cache.SetAsync(
            $"new {i}", BodyOf(i), new DistributedCacheEntryOptions(), stop));
        Assert.All(Enumerable.Range(0, 8), i => Assert.Equal(BodyOf(i), cache.Get($"new {i}")));
    }

    [Fact]
    public void Set_OfAnEntryThatWillNeverFit_Throws_AndTheOthersStay()
    {
        IDistributedCache cache = Distributed();
        cache.Set("small", BodyOf(1), new DistributedCacheEntryOptions());
        Assert.ThrowsAny<IOException>(() => cache.Set("large", new byte[5_000_000], new DistributedCacheEntryOptions()));
        Assert.Equal(BodyOf(1), cache.Get("small"));
        Assert.Null(cache.Get("large"));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task EvictByTag_WithoutRoom_Evicts(bool isEvictedBefore)
    {
        IOutputCacheStore store = Store();
        if (isEvictedBefore)
        {
            await store.EvictByTagAsync("tag", _stop);
        }

        await store.SetAsync("tagged", [1], ["tag"], s_day, _stop);
        Time.Advance(TimeSpan.FromHours(1));
        await store.SetAsync("newer", [2], ["tag"], s_day, _stop);
        TakeTheRest();
        await store.EvictByTagAsync("tag", _stop);
        Assert.Null(await store.GetAsync("tagged", _stop));
        Assert.Null(await store.GetAsync("newer", _stop));
    }

    [Fact]
    public void Set_WhereAllRoomIsTakenByOthers_Throws()
    {
        TakeTheRest();
        Assert.ThrowsAny<IOException>(() => Distributed().Set("key", BodyOf(1), new DistributedCacheEntryOptions()));
    }

    private void TakeTheRest()
    {
        // Without a buffer: so each write fails alone.
        using FileStream rest = new(Path.Combine(Folder, "rest"), FileMode.CreateNew, FileAccess.Write, FileShare.None, bufferSize: 0);
        Assert.ThrowsAny<IOException>((Action)(() =>
        {
            while (true)
            {
                rest.Write(new byte[4096]);
            }
        }));
    }

    private static byte[] BodyOf(int number) => [.. Enumerable.Range(number, EntryLength).Select(i => (byte)i)];

    private static async Task<int> RunAsync(string program, params string[] arguments)
    {
        using Process process = Process.Start(new ProcessStartInfo(program, arguments) { RedirectStandardError = true })!;
        _ = await process.StandardError.ReadToEndAsync(CancellationToken.None);
        await process.WaitForExitAsync(CancellationToken.None);
        return process.ExitCode;
    }
}
