using System.Buffers.Binary;
using System.Diagnostics.Metrics;
using Microsoft.AspNetCore.OutputCaching;
using Microsoft.AspNetCore.TestHost;
using Microsoft.Extensions.Caching.Distributed;
using Microsoft.Extensions.Caching.Hybrid;
using Microsoft.Extensions.Options;

namespace FilePipelines.AspNetCore.Tests.Caching;

/// <summary>The output cache and the distributed cache in files, on their public surface.</summary>
public sealed class FileOutputCacheTests : InACache
{
    private IEnumerable<string> Entries => Directory.EnumerateFiles(Folder, "*", SearchOption.AllDirectories)
        .Where(path => Path.GetFileName(path).Length == 32 && !path.Contains("tags", StringComparison.Ordinal));

    [Theory]
    [InlineData(0), InlineData(1), InlineData(1000), InlineData(65_536), InlineData(5_000_000)]
    public async Task Get_AfterSet_GivesTheSameBytes_AlsoAfterARestart(int length)
    {
        byte[] body = FileTree.Content(length);
        await Store().SetAsync("key", body, ["a", "b"], TimeSpan.FromHours(1), _stop);
        for (int i = 0; i < 2; i++)
        {
            IOutputCacheBufferStore store = Store();
            Assert.Equal(body, await store.GetAsync("key", _stop));
            Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 0));
            Assert.True(await store.TryGetAsync("key", pipe.Writer, _stop));
            await pipe.Writer.CompleteAsync();
            Assert.Equal(body, (await pipe.Reader.ReadAtLeastAsync(length + 1, _stop)).Buffer.ToArray());
            Assert.Null(await store.GetAsync("other", _stop));
        }
    }

    [Fact]
    public async Task Set_FromManySegments_StoresThemInOrder()
    {
        byte[] body = FileTree.Content(300_000);
        Pipe pipe = new(new PipeOptions(minimumSegmentSize: 1000, pauseWriterThreshold: 0));
        foreach (byte[] piece in body.Chunk(777))
        {
            await pipe.Writer.WriteAsync(piece, _stop);
        }

        await pipe.Writer.CompleteAsync();
        ReadResult result = await pipe.Reader.ReadAtLeastAsync(body.Length, _stop);
        await Store().SetAsync("key", result.Buffer, ReadOnlyMemory<string>.Empty, TimeSpan.FromHours(1), _stop);
        Assert.Equal(body, await Store().GetAsync("key", _stop));
    }

    [Theory]
    [InlineData("../../outside")]
    [InlineData("/etc/passwd")]
    [InlineData("a\0b")]
    [InlineData("")]
    [InlineData("ключ\ud800")]
    [InlineData("C:\\con")]
    public async Task Key_OfAnyText_IsNoNameOfAFile(string key)
    {
        await Store().SetAsync(key, [1], null, TimeSpan.FromHours(1), _stop);
        await Store().SetAsync(key + "2", [2], null, TimeSpan.FromHours(1), _stop);
        Assert.Equal([2], await Store().GetAsync(key + "2", _stop));
        Assert.Equal(2, Entries.Count());
        Assert.All(Entries, path => Assert.True(Path.GetFileName(path).All(char.IsAsciiHexDigitLower), path));
        Assert.Equal(["entries"], Directory.EnumerateFileSystemEntries(Path.GetDirectoryName(Folder)!).Select(Path.GetFileName));
    }

    [Fact]
    public async Task Key_WithALoneSurrogate_IsFound_AndIsNoOther()
    {
        // No InlineData: an attribute holds UTF-8.
        string[] keys = ["a\ud800", "a\ud801", "a\ufffd", "\udc00a"];
        for (int i = 0; i < keys.Length; i++)
        {
            await Store().SetAsync(keys[i], [(byte)i], [keys[i]], TimeSpan.FromHours(1), _stop);
        }

        for (int i = 0; i < keys.Length; i++)
        {
            Assert.Equal([(byte)i], (await Store().GetAsync(keys[i], _stop))!);
        }

        await Store().EvictByTagAsync(keys[0], _stop);
        Assert.Null(await Store().GetAsync(keys[0], _stop));
        Assert.Equal([1], await Store().GetAsync(keys[1], _stop));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Distributed_SlidingEntry_ThatIsReadWhileItIsStored_Stays(bool isAsynchronous)
    {
        // The store asks for the time at its most delicate moments.
        Action ask = () => { };
        IDistributedCache? cache = null;
        ServiceCollection services = new();
        services.AddSingleton<TimeProvider>(new AskedTime(() =>
        {
            Action asked = ask;
            ask = () => { };
            asked();
            ask = asked;
        }));
        services.AddFileDistributedCache(options => options.Folder = Folder);
        await using ServiceProvider provider = services.BuildServiceProvider();
        cache = provider.GetRequiredService<IDistributedCache>();
        DistributedCacheEntryOptions options = new() { SlidingExpiration = TimeSpan.FromMinutes(10) };
        ask = () => _ = cache.Get("key");
        for (byte i = 0; i < 3; i++)
        {
            if (isAsynchronous)
            {
                await cache.SetAsync("key", [i], options, _stop);
            }
            else
            {
                cache.Set("key", [i], options);
            }

            Assert.Equal([i], cache.Get("key")!);
        }
    }

    [Fact]
    public async Task Entry_WithAWrongLengthAndARightChecksum_IsAMiss()
    {
        IOutputCacheBufferStore store = Store();
        for (int at = 8; at < 40; at += 4)
        {
            foreach (uint value in (uint[])[0, 1, 100, int.MaxValue, 0x8000_0000, uint.MaxValue])
            {
                await store.SetAsync("key", [1, 2, 3], ["tag"], TimeSpan.FromHours(1), _stop);
                string path = Entries.Single();
                byte[] entry = await File.ReadAllBytesAsync(path, _stop);
                BinaryPrimitives.WriteUInt32LittleEndian(entry.AsSpan(at), value);
                uint checksum = uint.MaxValue;
                foreach (byte one in entry.AsSpan(8))
                {
                    checksum = System.Numerics.BitOperations.Crc32C(checksum, one);
                }

                BinaryPrimitives.WriteUInt32LittleEndian(entry.AsSpan(4), ~checksum);
                await File.WriteAllBytesAsync(path, entry, _stop);
                _ = await store.GetAsync("key", _stop);
            }
        }
    }

    [Fact]
    public async Task Hybrid_FindsItsEntriesAfterARestart()
    {
        int made = 0;
        for (int i = 0; i < 2; i++)
        {
            ServiceCollection services = new();
            services.AddFileDistributedCache(options => options.Folder = Folder);
            services.AddHybridCache();
            await using ServiceProvider provider = services.BuildServiceProvider();
            HybridCache cache = provider.GetRequiredService<HybridCache>();
            for (int j = 0; j < 3; j++)
            {
                Assert.Equal("value 1", await cache.GetOrCreateAsync(
                    "key", _ => ValueTask.FromResult($"value {++made}"), cancellationToken: _stop));
                byte[] large = await cache.GetOrCreateAsync(
                    "large", _ => ValueTask.FromResult(FileTree.Content(500_000 + made++)), cancellationToken: _stop);
                Assert.Equal(FileTree.Content(500_001), large);
            }

            Assert.Equal(2, made);
            if (i == 1)
            {
                await cache.RemoveAsync("key", _stop);
                Assert.Equal("value 3", await cache.GetOrCreateAsync(
                    "key", _ => ValueTask.FromResult($"value {++made}"), cancellationToken: _stop));
            }

            // HybridCache gives a value to its callers before it stores it.
            IDistributedCache stored = provider.GetRequiredService<IDistributedCache>();
            while (await stored.GetAsync("key", _stop) is null || await stored.GetAsync("large", _stop) is null)
            {
                await Task.Delay(10, _stop);
            }
        }
    }

    [Fact]
    public async Task Entry_ThatIsDamagedAnywhere_IsAMissAndRemoved()
    {
        byte[] body = FileTree.Content(200);
        await Store().SetAsync("key", body, ["tag"], TimeSpan.FromHours(1), _stop);
        string path = Entries.Single();
        byte[] whole = await File.ReadAllBytesAsync(path, _stop);
        DateTime changed = File.GetLastWriteTimeUtc(path);
        IOutputCacheBufferStore store = Store();
        List<byte[]> damaged = [[], [.. whole, 0], .. Enumerable.Range(0, whole.Length).Select(length => whole[..length])];
        for (int i = 0; i < whole.Length; i++)
        {
            byte[] changedByte = [.. whole];
            changedByte[i] ^= 0x10;
            damaged.Add(changedByte);
        }

        foreach (byte[] content in damaged)
        {
            await File.WriteAllBytesAsync(path, content, _stop);
            File.SetLastWriteTimeUtc(path, changed);
            Assert.Null(await store.GetAsync("key", _stop));
            Assert.False(File.Exists(path));
        }

        await File.WriteAllBytesAsync(path, whole, _stop);
        Assert.Equal(body, await store.GetAsync("key", _stop));
    }

    [Fact]
    public async Task Entry_WhoseTimeIsOver_IsAMiss()
    {
        IOutputCacheBufferStore store = Store();
        await store.SetAsync("key", [1], null, TimeSpan.FromMinutes(10), _stop);
        await store.SetAsync("forever", [2], null, TimeSpan.MaxValue, _stop);
        Time.Advance(TimeSpan.FromMinutes(10) - TimeSpan.FromSeconds(1));
        Assert.NotNull(await store.GetAsync("key", _stop));
        Time.Advance(TimeSpan.FromSeconds(1));
        Assert.Null(await store.GetAsync("key", _stop));
        Assert.Equal([2], await store.GetAsync("forever", _stop));
        Assert.Single(Entries);
    }

    [Fact]
    public async Task EvictByTag_InOneProcess_EndsTheEntriesOfAll_AndNoOthers()
    {
        (IOutputCacheBufferStore one, IOutputCacheBufferStore other) = (Store(), Store());
        await one.SetAsync("both", [1], ["x", "y"], TimeSpan.FromHours(1), _stop);
        await other.SetAsync("x", [2], ["x"], TimeSpan.FromHours(1), _stop);
        await one.SetAsync("none", [3], null, TimeSpan.FromHours(1), _stop);
        await other.EvictByTagAsync("y", _stop);
        Assert.Null(await one.GetAsync("both", _stop));
        Assert.Equal([2], await one.GetAsync("x", _stop));
        await one.EvictByTagAsync("x", _stop);
        Assert.Null(await other.GetAsync("x", _stop));
        Assert.Equal([3], await other.GetAsync("none", _stop));
        await one.SetAsync("both", [4], ["x", "y"], TimeSpan.FromHours(1), _stop);
        Assert.Equal([4], await Store().GetAsync("both", _stop));
    }

    [Fact]
    public async Task MaxSize_WhenItIsReached_RemovesWhatWasReadLongestAgo()
    {
        const int Count = 400;
        IOutputCacheBufferStore store = Store(maxSize: 1024 * 1024);
        for (int i = 0; i < Count; i++)
        {
            await store.SetAsync($"{i}", new byte[4000], null, TimeSpan.FromDays(1), _stop);
            Time.Advance(TimeSpan.FromSeconds(30));
        }

        // The last look may have begun before the last entry was stored: each of these may begin another one.
        await Eventually.TrueAsync(async () =>
        {
            await store.SetAsync("another", new byte[60_000], null, TimeSpan.FromDays(1), _stop);
            return Entries.Sum(path => (new FileInfo(path).Length + 4095) / 4096 * 4096) <= 1024 * 1024 * 11 / 10;
        });
        Assert.NotNull(await store.GetAsync($"{Count - 1}", _stop));
        Assert.Null(await store.GetAsync("0", _stop));
    }

    [Fact]
    public async Task Distributed_Sliding_BeginsAgainWithEachAccess_UntilTheAbsoluteEnd()
    {
        IDistributedCache cache = Distributed();
        await cache.SetAsync("key", [1], new DistributedCacheEntryOptions
        {
            SlidingExpiration = TimeSpan.FromMinutes(10),
            AbsoluteExpirationRelativeToNow = TimeSpan.FromMinutes(25),
        }, _stop);
        Time.Advance(TimeSpan.FromMinutes(9));
        Assert.Equal([1], await cache.GetAsync("key", _stop));
        Time.Advance(TimeSpan.FromMinutes(9));
        await cache.RefreshAsync("key", _stop);
        Time.Advance(TimeSpan.FromMinutes(6));
        Assert.Equal([1], cache.Get("key"));
        Time.Advance(TimeSpan.FromMinutes(1));
        Assert.Null(cache.Get("key"));

        cache.Set("key", [2], new DistributedCacheEntryOptions { SlidingExpiration = TimeSpan.FromMinutes(10) });
        Time.Advance(TimeSpan.FromMinutes(10));
        Assert.Null(await cache.GetAsync("key", _stop));
    }

    [Fact]
    public async Task Look_TimeOfTheEntryCouldNotBeSet_KeepsItUntilItsOwnEnd()
    {
        IOutputCacheBufferStore store = Store(maxSize: 1024 * 1024);
        foreach (string key in (string[])["kept", "expired"])
        {
            await store.SetAsync(key, [1], null, TimeSpan.FromHours(key == "kept" ? 2 : 1), _stop);
        }

        // As where the system refuses utimensat(2): the time is that of the writing.
        string[] entries = [.. Entries];
        Array.ForEach(entries, path => File.SetLastWriteTimeUtc(path, DateTime.UtcNow));
        Time.Advance(TimeSpan.FromMinutes(90));
        await Eventually.TrueAsync(async () =>
        {
            // Enough for a look.
            await store.SetAsync("another", new byte[60_000], null, TimeSpan.FromDays(1), _stop);
            return entries.Count(File.Exists) < entries.Length;
        });
        Assert.Equal([1], await store.GetAsync("kept", _stop));
        Assert.Null(await store.GetAsync("expired", _stop));
    }

    [Fact]
    public async Task Distributed_Remove_RemovesTheEntry_AlsoOneThatIsNotThere()
    {
        IDistributedCache cache = Distributed();
        await cache.RemoveAsync("key", _stop);
        cache.Set("key", [1], new DistributedCacheEntryOptions());
        ArrayBufferWriter<byte> body = new();
        Assert.True(Assert.IsAssignableFrom<IBufferDistributedCache>(cache).TryGet("key", body));
        Assert.Equal([1], body.WrittenSpan.ToArray());
        cache.Remove("key");
        Assert.Null(cache.Get("key"));
        Assert.Throws<ArgumentOutOfRangeException>(() => cache.Set(
            "key", [1], new DistributedCacheEntryOptions { AbsoluteExpiration = Time.GetUtcNow() }));
    }

    [Fact]
    public async Task Application_WithTheCache_AnswersFromIt_AlsoAfterARestart()
    {
        int made = 0;
        byte[] body = FileTree.Content(200_000);
        for (int i = 0; i < 2; i++)
        {
            WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
            builder.WebHost.UseTestServer();
            builder.Services.AddFileOutputCache(options => options.Folder = Folder);
            builder.Services.AddOutputCache();
            await using WebApplication app = builder.Build();
            app.UseOutputCache();
            app.MapGet("/", () =>
            {
                made++;
                return Results.Bytes(body);
            }).CacheOutput(policy => policy.Expire(TimeSpan.FromHours(1)).Tag("all"));
            await app.StartAsync(_stop);
            using HttpClient client = app.GetTestClient();
            Assert.Equal(body, await client.GetByteArrayAsync(new Uri("/", UriKind.Relative), _stop));
            Assert.Equal(body, await client.GetByteArrayAsync(new Uri("/", UriKind.Relative), _stop));
            Assert.Equal(1 + i, made);
            if (i == 0)
            {
                await app.Services.GetRequiredService<IOutputCacheStore>().EvictByTagAsync("all", _stop);
            }
        }
    }

    [Fact]
    public async Task Entries_OfProcessesThatAreKilled_AreWholeOrMissing()
    {
        // At least one that a process has stored whole is found, or the test would prove nothing.
        int found = 0;
        int rounds = Rounds.Of(3, 20);
        for (int round = 0; round < rounds; round++)
        {
            using Process one = CacheChild.Start(Folder);
            using Process other = CacheChild.Start(Folder);
            Assert.NotNull(await one.StandardError.ReadLineAsync(_stop));
            await Task.Delay(Random.Shared.Next(50), _stop);
            one.Kill();
            other.Kill();
            Assert.DoesNotContain("wrong", await one.StandardError.ReadToEndAsync(_stop), StringComparison.Ordinal);
            Assert.DoesNotContain("wrong", await other.StandardError.ReadToEndAsync(_stop), StringComparison.Ordinal);
            await one.WaitForExitAsync(_stop);
            await other.WaitForExitAsync(_stop);
            await using ServiceProvider provider = CacheChild.Open(Folder);
            IOutputCacheStore store = provider.GetRequiredService<IOutputCacheStore>();
            for (int key = 0; key < CacheChild.KeyCount; key++)
            {
                if (await store.GetAsync(CacheChild.Name(key), _stop) is { } body)
                {
                    Assert.True(CacheChild.IsBodyOf(key, body), $"key {key}, {body.Length} bytes");
                    found++;
                }
            }
        }

        Assert.NotEqual(0, found);
    }

    [Fact]
    public async Task Dispose_WaitsForTheLookThatIsUnderWay_SoThatTheFolderCanBeRemoved()
    {
        using ManualResetEventSlim looks = new();
        using ManualResetEventSlim mayGoOn = new();
        int calls = 0;
        ServiceCollection services = new();
        services.AddSingleton<TimeProvider>(new AskedTime(() =>
        {
            // A look asks for the time before it reads the folder.
            if (Thread.CurrentThread.Name == "Pipelines.File cache" && Interlocked.Increment(ref calls) == 1)
            {
                looks.Set();
                mayGoOn.Wait(CancellationToken.None);
            }
        }));
        services.AddFileDistributedCache(options =>
        {
            options.Folder = Folder;
            options.MaxSize = 1 << 20;
        });
        ServiceProvider provider = services.BuildServiceProvider();
        IDistributedCache cache = provider.GetRequiredService<IDistributedCache>();
        await cache.SetAsync("key", FileTree.Content(100_000), new DistributedCacheEntryOptions(), _stop);
        Assert.True(looks.Wait(TimeSpan.FromSeconds(60), _stop));
        Task disposed = Task.Factory.StartNew(provider.Dispose, _stop, TaskCreationOptions.LongRunning, TaskScheduler.Default);
        Assert.NotSame(disposed, await Task.WhenAny(disposed, Task.Delay(100, _stop)));
        mayGoOn.Set();
        await disposed;
    }

    [Fact]
    public async Task Counters_TellHitsMissesAndDamage()
    {
        ServiceCollection services = new();
        services.AddMetrics().AddFileOutputCache(options => options.Folder = Folder);
        await using ServiceProvider provider = services.BuildServiceProvider();
        IOutputCacheStore store = provider.GetRequiredService<IOutputCacheStore>();
        ConcurrentDictionary<string, long> counts = new();
        using MeterListener listener = new();
        object meters = provider.GetRequiredService<IMeterFactory>();
        listener.InstrumentPublished = (instrument, it) =>
        {
            if (instrument.Meter.Scope == meters)
            {
                it.EnableMeasurementEvents(instrument);
            }
        };
        listener.SetMeasurementEventCallback<long>((instrument, value, _, _)
            => counts.AddOrUpdate(instrument.Name, value, (_, sum) => sum + value));
        listener.Start();
        await store.SetAsync("key", [1], null, TimeSpan.FromHours(1), _stop);
        Assert.NotNull(await store.GetAsync("key", _stop));
        Assert.NotNull(await store.GetAsync("key", _stop));
        Assert.Null(await store.GetAsync("none", _stop));
        await File.WriteAllTextAsync(Entries.Single(), "damaged", _stop);
        Assert.Null(await store.GetAsync("key", _stop));
        Assert.Equal((2, 2, 1), (counts["pipelines.file.cache.hits"], counts["pipelines.file.cache.misses"],
            counts["pipelines.file.cache.damaged"]));
    }

    [Fact]
    public void Options_ThatAreMissing_AreRefused()
    {
        Assert.Throws<OptionsValidationException>(() => Provider(services => services.AddFileOutputCache(_ => { }))
            .GetRequiredService<IOutputCacheStore>());
        Assert.Throws<OptionsValidationException>(() => Store(maxSize: 1000));
    }

    private sealed class AskedTime(Action asked) : TimeProvider
    {
        public override DateTimeOffset GetUtcNow()
        {
            asked();
            return base.GetUtcNow();
        }
    }
}
