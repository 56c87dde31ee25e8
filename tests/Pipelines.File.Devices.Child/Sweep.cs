using System.Buffers;
using System.Diagnostics.Metrics;
using System.Globalization;
using System.IO.Pipelines;
using System.Text;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.OutputCaching;
using Microsoft.Extensions.Caching.Distributed;
using Microsoft.Extensions.DependencyInjection;
using Pipelines.File.AspNetCore;

namespace FilePipelines.Devices.Child;

/// <summary>Performs one operation after the other, as the parent says, while the parent answers the system calls.</summary>
internal static class Sweep
{
    private const int ContentLength = 150_000;
    private const int JournalRecords = 10;
    private const int JournalRecordLength = 5000;

    private static readonly Dictionary<string, Func<string, Task>> s_operations = new()
    {
        ["open"] = OpenAsync,
        ["replace"] = folder => ReplaceAsync(folder, FileMode.Create, FilePipeBackend.Auto),
        ["replacenew"] = folder => ReplaceAsync(folder, FileMode.CreateNew, FilePipeBackend.Auto),
        ["replaceportable"] = folder => ReplaceAsync(folder, FileMode.Create, FilePipeBackend.Portable),
        ["durable"] = DurableAsync,
        ["append"] = AppendAsync,
        ["follow"] = FollowAsync,
        ["upload"] = UploadAsync,
        ["copy"] = CopyAsync,
        ["journal"] = AppendToJournalAsync,
        ["journalcheck"] = CheckJournalAsync,
        ["journalread"] = ReadJournalAsync,
        ["outputcache"] = CacheOutputAsync,
        ["distributedcache"] = CacheAsync,
    };

    private static long s_appended;

    private static readonly byte[] s_content = Pattern.Bytes(ContentLength);

    internal static async Task<int> RunAsync(string folder)
    {
        // Everything was done once, so that no code is loaded later on.
        using MeterListener listener = Listen(out Func<long> inUse);
        string warm = Directory.CreateDirectory(Path.Combine(folder, "warm")).FullName;
        for (int i = 0; i < 2; i++)
        {
            foreach (string name in s_operations.Keys)
            {
                await File.WriteAllBytesAsync(Path.Combine(warm, "source"), s_content);
                await File.WriteAllTextAsync(Path.Combine(warm, "log"), "one\ntwo\nthree\n");
                File.Delete(Path.Combine(warm, "new"));
                if (name is "journal" or "journalread"
                    && Directory.Exists(Path.Combine(warm, "journal")))
                {
                    Directory.Delete(Path.Combine(warm, "journal"), recursive: true);
                }

                string told = await PerformAsync(name, warm);
                if (told != "ok")
                {
                    throw new WrongStateException($"{name}: {told}");
                }

                // An error of each, too. A follower would wait for its log, and a journal is made.
                _ = name is "follow" or "journal" or "journalread" ? told : await PerformAsync(name, Path.Combine(warm, "nowhere"));
            }
        }

        Directory.Delete(warm, recursive: true);
        _ = inUse();
        string[] calls = (await Console.In.ReadLineAsync() ?? "").Split(' ');
        int descriptor = SystemCallFilter.Install(calls.Select(static call => int.Parse(call, CultureInfo.InvariantCulture)));
        SystemCallFilter.Say(Encoding.ASCII.GetBytes($"listener {descriptor}\n"));
        while (await Console.In.ReadLineAsync() is { } command)
        {
            Console.WriteLine(command == "memory" ? inUse().ToString(CultureInfo.InvariantCulture) : await PerformAsync(command, folder));
        }

        return 0;
    }

    private static async Task<string> PerformAsync(string name, string folder)
    {
        try
        {
            await s_operations[name](folder);
            return "ok";
        }
        catch (Exception e)
        {
            return $"{e.GetType().FullName} {e.Message.ReplaceLineEndings(" ")}{(e is WrongStateException ? e.StackTrace : "")}";
        }
    }

    private static async Task OpenAsync(string folder)
    {
        FilePipeReader reader = await FilePipeReader.OpenAsync(Path.Combine(folder, "source"));
        await using (reader)
        {
            ReadResult result = await reader.ReadAtLeastAsync(ContentLength + 1);
            WrongStateException.Demand(
                result.Buffer.ToArray().AsSpan().SequenceEqual(s_content), $"{result.Buffer.Length} bytes were read.");
            reader.AdvanceTo(result.Buffer.End);
        }
    }

    private static async Task ReplaceAsync(string folder, FileMode mode, FilePipeBackend backend)
    {
        string path = Path.Combine(folder, mode == FileMode.CreateNew ? "new" : "source");
        FilePipeWriter writer = await FilePipeWriter.OpenAsync(
            path,
            new()
            {
                Mode = mode,
                Replace = true,
                FlushGuarantee = FlushGuarantee.Durable,
                Backend = backend,
                PreallocationSize = 2 * ContentLength,
            });
        await using (writer)
        {
            await writer.WriteAsync(s_content);
            writer.Write(s_content);
            await writer.CompleteAsync();
        }
    }

    private static Task DurableAsync(string folder)
        => WriteAsync(
            Path.Combine(folder, "new"), new() { FlushGuarantee = FlushGuarantee.Durable, PreallocationSize = 3 * ContentLength });

    private static Task AppendAsync(string folder)
        => WriteAsync(
            Path.Combine(folder, "source"),
            new() { Mode = FileMode.Append, FlushGuarantee = FlushGuarantee.Durable, Caching = FileCaching.DropBehind });

    private static async Task WriteAsync(string path, FilePipeWriterOptions options)
    {
        FilePipeWriter writer = await FilePipeWriter.OpenAsync(path, options);
        Exception? first = null;
        try
        {
            await writer.WriteAsync(s_content);
            writer.Write(s_content.AsSpan(0, 1000));
            await writer.FlushAsync();
        }
        catch (Exception e)
        {
            first = e;
        }

        try
        {
            await writer.CompleteAsync();
        }
        catch (Exception e) when (first is not null)
        {
            WrongStateException.Demand(e.GetType() == first.GetType(), $"First {first}, then {e}");
            throw;
        }

        WrongStateException.Demand(first is null, $"CompleteAsync succeeded after {first}");
    }

    private static async Task FollowAsync(string folder)
    {
        using CancellationTokenSource limit = new(TimeSpan.FromSeconds(20));
        LogFollowerOptions options = new() { QuietTime = TimeSpan.FromMilliseconds(1), FollowInterval = TimeSpan.FromMilliseconds(1) };
        string[] wanted = ["one", "two", "three"];
        int lines = 0;
        try
        {
            await foreach (FollowedLine line in new LogFollower(Path.Combine(folder, "log"), options).ReadLinesAsync(limit.Token))
            {
                WrongStateException.Demand(line.ToString() == wanted[lines], $"Line {lines} is '{line}'.");
                if (++lines == wanted.Length)
                {
                    // In the next step, which gives the line back.
                    await limit.CancelAsync();
                }
            }
        }
        catch (OperationCanceledException) when (lines == wanted.Length)
        {
            // All lines.
        }
    }

    private static async Task UploadAsync(string folder)
    {
        DefaultHttpContext context = new();
        context.Request.Body = new MemoryStream(s_content);
        await context.Request.SaveBodyAsync(Path.Combine(folder, "source"), new() { Durable = true });
    }

    // What was acknowledged is there when the journal is opened again: the next operation.
    private static async Task AppendToJournalAsync(string folder)
    {
        s_appended = 0;
        Journal journal = await Journal.OpenAsync(Path.Combine(folder, "journal"), new JournalOptions { SegmentSize = 16 * 1024 });
        await using (journal)
        {
            for (int i = 0; i < JournalRecords; i++)
            {
                long sequence = await journal.AppendAsync(s_content.AsMemory(i * JournalRecordLength, JournalRecordLength));
                s_appended = sequence + 1;
            }
        }
    }

    // By its writer, in another process, and by a consumer, behind which everything goes that is not needed.
    private static async Task ReadJournalAsync(string folder)
    {
        await AppendToJournalAsync(folder);
        await CheckJournalAsync(folder);
        string path = Path.Combine(folder, "journal");
        int read = 0;
        await foreach (JournalBatch batch in JournalReader.Open(path).ReadBatchesAsync())
        {
            read += batch.Count;
        }

        WrongStateException.Demand(read == JournalRecords, $"The reader read {read} records.");
        await using (JournalConsumer consumer = await JournalConsumer.OpenAsync(path, "consumer"))
        {
            await foreach (JournalConsumerBatch batch in consumer.ReadBatchesAsync())
            {
                await consumer.CommitAsync(batch.NextSequence);
            }

            WrongStateException.Demand(consumer.Behind == 0, $"The consumer is at {consumer.Position.Sequence}.");
        }

        await using Journal journal = await Journal.OpenAsync(path, new JournalOptions { SegmentSize = 16 * 1024 });
        await journal.TrimBeforeAsync(JournalRecords);
        WrongStateException.Demand(journal.FirstSequence > 0, "Nothing was removed.");
    }

    private static async Task CheckJournalAsync(string folder)
    {
        await using Journal journal = await Journal.OpenAsync(Path.Combine(folder, "journal"));
        long next = journal.FirstSequence;
        await foreach (JournalBatch batch in journal.ReadBatchesAsync(next))
        {
            foreach (JournalRecord record in batch)
            {
                WrongStateException.Demand(
                    record.Span.SequenceEqual(s_content.AsSpan((int)next * JournalRecordLength, JournalRecordLength)), $"Record {next}");
                next++;
            }
        }

        WrongStateException.Demand(next >= s_appended, $"{s_appended} records were appended, and {next} are there.");
    }

    private static async Task CopyAsync(string folder)
    {
        FilePipeReader reader = await FilePipeReader.OpenAsync(Path.Combine(folder, "source"));
        await using (reader)
        {
            FilePipeWriter writer = await FilePipeWriter.OpenAsync(
                Path.Combine(folder, "new"), new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable });
            await using (writer)
            {
                await reader.CopyToAsync(writer);
                await writer.CompleteAsync();
            }
        }
    }

    // Stored, found, removed by its tag, and not found any more.
    private static async Task CacheOutputAsync(string folder)
    {
        ServiceCollection services = new();
        services.AddFileOutputCache(options => options.Folder = Path.Combine(folder, "cache"));
        await using ServiceProvider provider = services.BuildServiceProvider();
        IOutputCacheStore cache = provider.GetRequiredService<IOutputCacheStore>();
        await cache.SetAsync("key", s_content, ["tag"], TimeSpan.FromHours(1), default);
        WrongStateException.Demand((await cache.GetAsync("key", default))?.AsSpan().SequenceEqual(s_content) == true, "Nothing is stored.");
        await cache.EvictByTagAsync("tag", default);
        WrongStateException.Demand(await cache.GetAsync("key", default) is null, "The tag's entry is still found.");
    }

    // Stored anew, with a sliding expiration, found and removed.
    private static async Task CacheAsync(string folder)
    {
        ServiceCollection services = new();
        services.AddFileDistributedCache(options => options.Folder = Path.Combine(folder, "cache"));
        await using ServiceProvider provider = services.BuildServiceProvider();
        IDistributedCache cache = provider.GetRequiredService<IDistributedCache>();
        DistributedCacheEntryOptions options = new() { SlidingExpiration = TimeSpan.FromHours(1) };
        cache.Set("key", [1], options);
        await cache.SetAsync("key", s_content, options);
        WrongStateException.Demand((await cache.GetAsync("key"))?.AsSpan().SequenceEqual(s_content) == true, "Nothing is stored.");
        await cache.RefreshAsync("key");
        WrongStateException.Demand(cache.Get("key")?.AsSpan().SequenceEqual(s_content) == true, "It is gone.");
        await cache.RemoveAsync("key");
        WrongStateException.Demand(await cache.GetAsync("key") is null, "It is still found.");
    }

    /// <summary>The bytes of the pool that somebody has.</summary>
    private static MeterListener Listen(out Func<long> inUse)
    {
        Dictionary<string, long> told = [];
        MeterListener listener = new()
        {
            InstrumentPublished = static (instrument, listener) =>
            {
                if (instrument.Meter.Name == "Pipelines.File" && instrument.Name.Contains(".pool.", StringComparison.Ordinal))
                {
                    listener.EnableMeasurementEvents(instrument);
                }
            },
        };
        listener.SetMeasurementEventCallback<long>(
            (instrument, value, _, _) => told[instrument.Name["pipelines.file.pool.".Length..]] = value);
        listener.Start();
        inUse = () =>
        {
            listener.RecordObservableInstruments();
            return told.GetValueOrDefault("allocated") - told.GetValueOrDefault("released") - told.GetValueOrDefault("retained");
        };
        return listener;
    }
}
