using System.Diagnostics;
using System.Diagnostics.Metrics;
using System.Globalization;
using Microsoft.AspNetCore.OutputCaching;

namespace StaticFileServer;

/// <summary>An output cache in files with very many entries: how long it takes to start, and what it takes of memory.</summary>
internal static class CacheEntries
{
    private const int BodyLength = 100;

    /// <summary>Adds the entries that are missing; a run that was broken off goes on.</summary>
    internal static async Task FillAsync(string folder, int count)
    {
        await using ServiceProvider provider = Services(folder);
        IOutputCacheStore store = provider.GetRequiredService<IOutputCacheStore>();
        byte[] body = new byte[BodyLength];
        await Parallel.ForAsync(0, count, async (i, stop) =>
        {
            if (await store.GetAsync(KeyOf(i), stop) is null)
            {
                await store.SetAsync(KeyOf(i), body, null, TimeSpan.FromDays(365), stop);
            }
        });
    }

    /// <summary>Prints a row of a Markdown table.</summary>
    internal static async Task MeasureAsync(string folder, int count)
    {
        // What a process needs once for any cache is loaded with an empty one.
        string empty = Directory.CreateTempSubdirectory("entries-").FullName;
        await using (ServiceProvider small = Services(empty))
        {
            IOutputCacheStore warm = small.GetRequiredService<IOutputCacheStore>();
            await warm.SetAsync("key", new byte[BodyLength], null, TimeSpan.FromDays(1), CancellationToken.None);
            _ = await warm.GetAsync("key", CancellationToken.None);
        }

        Directory.Delete(empty, recursive: true);
        long before = Memory();
        long begun = Stopwatch.GetTimestamp();
        await using ServiceProvider provider = Services(folder);
        IOutputCacheStore store = provider.GetRequiredService<IOutputCacheStore>();
        bool isThere = await store.GetAsync(KeyOf(count / 2), CancellationToken.None) is not null;
        TimeSpan start = Stopwatch.GetElapsedTime(begun);

        // The look through the folder begins after a second, and tells the bytes when it has ended.
        long bytes = 0;
        using MeterListener listener = new();
        listener.InstrumentPublished = (instrument, self) =>
        {
            if (instrument.Name == "pipelines.file.cache.bytes")
            {
                self.EnableMeasurementEvents(instrument);
            }
        };
        listener.SetMeasurementEventCallback<long>((_, value, _, _) => bytes = Math.Max(bytes, value));
        listener.Start();
        long most = Memory();
        for (; bytes < count; most = Math.Max(most, Memory()))
        {
            await Task.Delay(20);
            listener.RecordObservableInstruments();
        }

        TimeSpan look = Stopwatch.GetElapsedTime(begun) - TimeSpan.FromSeconds(1);
        Console.WriteLine(string.Create(CultureInfo.InvariantCulture,
            $"| {count:N0} | {(isThere ? start.TotalMilliseconds : double.NaN):F1} | {look.TotalSeconds:F1} | "
            + $"{(double)(most - before) / count:F1} | {(double)(Memory() - before) / count:F1} |"));
    }

    private static ServiceProvider Services(string folder)
        => new ServiceCollection().AddFileOutputCache(options =>
        {
            options.Folder = folder;
            options.MaxSize = 1L << 40;
        }).BuildServiceProvider();

    private static string KeyOf(int i) => string.Create(CultureInfo.InvariantCulture, $"GET /products/{i}");

    private static long Memory()
    {
        using Process self = Process.GetCurrentProcess();
        return self.WorkingSet64;
    }
}
