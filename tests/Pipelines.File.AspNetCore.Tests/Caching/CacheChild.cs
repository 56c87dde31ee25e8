using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.OutputCaching;

namespace FilePipelines.AspNetCore.Tests.Caching;

/// <summary>This test program as a process that fills a cache until it is killed.</summary>
internal static class CacheChild
{
    private const string Variable = "PIPELINES_FILE_CACHE_CHILD";
    private const int Keys = 40;
    private const int MaxNumbers = 5000;

    internal static Process Start(string folder)
    {
        ProcessStartInfo info = new(Path.ChangeExtension(typeof(CacheChild).Assembly.Location, null))
        {
            // The program prints its help, and ends only with the thread that fills the cache.
            ArgumentList = { "-?" },
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        info.Environment[Variable] = folder;
        return Process.Start(info)!;
    }

    /// <summary>Entries that name their key in every byte, with any of their versions.</summary>
    internal static byte[] BodyOf(int key, int version)
        => [.. Enumerable.Range(0, Length(key)).Select(i => (byte)((key * 7) + version + i))];

    /// <summary>Whether that is what some version of the key is.</summary>
    internal static bool IsBodyOf(int key, byte[] body)
        => body.Length == Length(key) && body.AsSpan().SequenceEqual(BodyOf(key, (byte)(body[0] - (key * 7))));

    internal static ServiceProvider Open(string folder)
        => new ServiceCollection().AddFileOutputCache(options => options.Folder = folder).BuildServiceProvider();

    internal static int KeyCount => Keys;

    private static int Length(int key) => 1 + (key * MaxNumbers % 90_000);

    [ModuleInitializer]
    internal static void RunIfChild()
    {
        if (Environment.GetEnvironmentVariable(Variable) is { } folder)
        {
            // Every other thread waits for the types of this module until this method has returned.
            new Thread(() => FillAsync(folder).GetAwaiter().GetResult()).Start();
        }
    }

    private static async Task FillAsync(string folder)
    {
        await using ServiceProvider provider = Open(folder);
        IOutputCacheStore store = provider.GetRequiredService<IOutputCacheStore>();
        for (int version = 0; ; version++)
        {
            await Parallel.ForAsync(0, Keys, async (key, stop) =>
            {
                await store.SetAsync(Name(key), BodyOf(key, version), ["all"], TimeSpan.FromHours(1), stop);
                if (await store.GetAsync(Name(key), stop) is { } body && !IsBodyOf(key, body))
                {
                    await Console.Error.WriteLineAsync($"wrong {key}");
                }
            });
            await Console.Error.WriteLineAsync(version.ToString(CultureInfo.InvariantCulture));
            await store.EvictByTagAsync(version % 3 == 0 ? "all" : "none", CancellationToken.None);
        }
    }

    internal static string Name(int key) => $"key {key}";
}
