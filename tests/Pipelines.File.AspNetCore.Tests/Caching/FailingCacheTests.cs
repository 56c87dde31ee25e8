using Microsoft.AspNetCore.OutputCaching;
using Microsoft.AspNetCore.TestHost;
using Microsoft.Extensions.Caching.Distributed;

namespace FilePipelines.AspNetCore.Tests.Caching;

/// <summary>Caches in folders that fail, are taken away, or hold what a cache has not written.</summary>
public sealed class FailingCacheTests : InACache
{
    [Fact]
    public async Task Application_WhoseCacheCannotStore_AnswersAllTheSame()
    {
        byte[] body = FileTree.Content(200_000);
        TestLog log = new();
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.WebHost.UseTestServer();
        builder.Logging.ClearProviders().AddProvider(log);
        builder.Services.AddFileOutputCache(options => options.Folder = Folder);
        builder.Services.AddOutputCache();
        await using WebApplication app = builder.Build();
        app.UseOutputCache();
        app.MapGet("/", () => Results.Bytes(body)).CacheOutput(policy => policy.Expire(TimeSpan.FromHours(1)).Tag("all"));
        await app.StartAsync(_stop);
        _ = app.Services.GetRequiredService<IOutputCacheStore>();
        Break();
        using HttpClient client = app.GetTestClient();
        for (int i = 0; i < 2; i++)
        {
            Assert.Equal(body, await client.GetByteArrayAsync(new Uri("/", UriKind.Relative), _stop));
        }

        Assert.NotEmpty(log.Lines);
    }

    [Fact]
    public async Task Distributed_ThatCannotStore_Throws_AndFindsNothing()
    {
        IDistributedCache cache = Distributed();
        Break();
        await Assert.ThrowsAnyAsync<IOException>(() => cache.SetAsync("key", [1], new DistributedCacheEntryOptions(), _stop));
        Assert.ThrowsAny<IOException>(() => cache.Set("key", [1], new DistributedCacheEntryOptions()));
        Assert.Null(await cache.GetAsync("key", _stop));
        Assert.Null(cache.Get("key"));
    }

    [Fact]
    public async Task Folder_ThatIsTakenAway_IsMadeAgain()
    {
        IOutputCacheStore store = Provider(services => services.AddFileOutputCache(options => options.Folder = Folder))
            .GetRequiredService<IOutputCacheStore>();
        await store.SetAsync("key", [1], ["tag"], TimeSpan.FromHours(1), _stop);
        Directory.Delete(Folder, recursive: true);
        Assert.Null(await store.GetAsync("key", _stop));
        await store.SetAsync("key", [2], ["tag"], TimeSpan.FromHours(1), _stop);
        Assert.Equal([2], (await store.GetAsync("key", _stop))!);
        await store.EvictByTagAsync("tag", _stop);
        Assert.Null(await store.GetAsync("key", _stop));
    }

    [Fact]
    public async Task Distributed_RelativeExpirationOfAnyLength_IsTaken()
    {
        IDistributedCache cache = Distributed();
        DistributedCacheEntryOptions options = new() { AbsoluteExpirationRelativeToNow = TimeSpan.MaxValue };
        await cache.SetAsync("key", [1], options, _stop);
        Assert.Equal([1], (await cache.GetAsync("key", _stop))!);
    }

    [Fact]
    public async Task TemporaryFile_OfAProcessThatWasKilled_IsRemoved_WheneverItsEntryExpires()
    {
        IDistributedCache cache = Distributed();
        await cache.SetAsync("key", [1], new DistributedCacheEntryOptions(), _stop);
        string left = Path.Combine(Directory.EnumerateDirectories(Folder, "???").Single(), ".pipelines-file-0123456789abcdef");
        await File.WriteAllTextAsync(left, "left", _stop);
        File.SetLastAccessTimeUtc(left, DateTime.UtcNow.AddHours(-2));
        File.SetLastWriteTimeUtc(left, DateTime.UtcNow.AddYears(1));

        // The look that comes a second after the beginning.
        await Eventually.TrueAsync(() => !File.Exists(left));
        Assert.Equal([1], (await cache.GetAsync("key", _stop))!);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Entry_ThatIsLongerThanMemoryCanHold_IsAMiss_AndRemoved(bool isAsynchronous)
    {
        IDistributedCache cache = Distributed();
        await cache.SetAsync("key", [1], new DistributedCacheEntryOptions(), _stop);
        string path = Directory.EnumerateFiles(Directory.EnumerateDirectories(Folder, "???").Single()).Single();
        using (FileStream entry = new(path, FileMode.Open))
        {
            Assert.SkipUnless(TryLengthen(entry, 3L << 30), "The file system has no sparse files of that length.");
        }

        Assert.Null(isAsynchronous ? await cache.GetAsync("key", _stop) : cache.Get("key"));
        Assert.False(File.Exists(path));
    }

    [Fact]
    public async Task Set_OfMoreThanMemoryCanHold_IsRefused_BecauseNobodyCouldReadIt()
    {
        // The same bytes many times.
        byte[] piece = new byte[1 << 24];
        Piece first = new(piece, null);
        Piece last = first;
        for (int i = 1; i < 1 << 7; i++)
        {
            last = new Piece(piece, last);
        }

        ReadOnlySequence<byte> body = new(first, 0, last, piece.Length);
        Assert.Equal(1L << 31, body.Length);
        IBufferDistributedCache cache = (IBufferDistributedCache)Distributed();
        Assert.Throws<ArgumentException>(() => cache.Set("key", body, new DistributedCacheEntryOptions()));
        await Assert.ThrowsAsync<ArgumentException>(() => cache.SetAsync("key", body, new DistributedCacheEntryOptions(), _stop).AsTask());
        Assert.Empty(Directory.EnumerateDirectories(Folder, "???"));
    }

    private static bool TryLengthen(FileStream file, long length)
    {
        try
        {
            file.SetLength(length);
            return true;
        }
        catch (IOException)
        {
            return false;
        }
    }

    private sealed class Piece : ReadOnlySequenceSegment<byte>
    {
        internal Piece(byte[] bytes, Piece? before)
        {
            Memory = bytes;
            if (before is not null)
            {
                RunningIndex = before.RunningIndex + before.Memory.Length;
                before.Next = this;
            }
        }
    }

    // A file in the place of every folder that an entry would be in, and of that of the tags.
    private void Break()
    {
        // Removing the folder could meet a look that makes its lock.
        Directory.Move(Folder, Folder + " before");
        File.WriteAllText(Folder, "no folder");
    }
}
