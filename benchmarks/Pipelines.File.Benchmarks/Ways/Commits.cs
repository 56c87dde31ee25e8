using System.Buffers;
using System.Buffers.Binary;
using System.Threading.Channels;
using FASTER.core;
using Microsoft.Data.Sqlite;
using RocksDbSharp;

namespace FilePipelines.Benchmarks;

/// <summary>
/// <c>durable</c>: the ways to put records on the device one by one, with 1, 8 and 64 producers. A growing file is written with the file
/// system's journal at each sync; a preallocated one has its blocks already, and a sync writes the data alone.
/// </summary>
internal static class Commits
{
    /// <summary>Bytes of one record.</summary>
    internal const int RecordSize = 512;
    internal const string Growing = "Growing";
    internal const string Preallocated = "Preallocated";
    internal const string ByHand = "by hand: Channel, FileStream, one Flush(true)";
    private const long MiB = 1024 * 1024;

    // More than any way writes in one round.
    private const long PreallocatedLength = 192 * MiB;
    private static readonly TimeSpan s_share = TimeSpan.FromMilliseconds(200);
    private static readonly byte[][] s_records = [.. Enumerable.Range(0, 64).Select(static producer =>
    {
        byte[] record = new byte[RecordSize];
        new Random(producer).NextBytes(record);
        return record;
    })];

    internal static IReadOnlyList<int> ProducerCounts { get; } = [1, 8, 64];

    internal static async Task<int> RunAsync(string[] arguments)
    {
        Arguments given = new(arguments, "durable [--rounds N] [--only PART-OF-A-NAME,...]");
        int rounds = given.Number("--rounds", 9);
        string[] only = given.Text("--only")?.Split(',') ?? [];
        if (given.AreWrong())
        {
            return 2;
        }

        Console.Write(ToCsv(await MeasureAsync(rounds, ProducerCounts, only)));
        return 0;
    }

    internal static string ToCsv(IReadOnlyList<Load> loads) => string.Concat(loads.Select(load => string.Create(
        CultureInfo.InvariantCulture, $"{Figures.Quoted(load.Way)},{load.Kind},{load.AtOnce},{Figures.Fields(load.PerSecond, "0")},"
            + $"{load.Against(HandOf(loads, load)).Median:0.0000},{Load.At(load.Latencies, 0.5):0.0},"
            + $"{Load.At(load.Latencies, 0.99):0.0}\n")).Prepend("method,file,producers,commits_per_second_min,lower_quartile,median,"
            + "upper_quartile,max,ratio_median,us_median,us_99th_percentile\n"));

    /// <summary>The group commit by hand at the same point.</summary>
    private static Load HandOf(IEnumerable<Load> loads, Load load)
        => loads.Single(other => other.Way == ByHand && other.Kind == load.Kind && other.AtOnce == load.AtOnce);

    /// <summary>Every way with every number of producers; or those with such a part of a name, and the group commit by hand.</summary>
    internal static async Task<IReadOnlyList<Load>> MeasureAsync(
        int rounds, IReadOnlyList<int> producerCounts, params string[] only)
    {
        List<Load> loads = [];
        foreach (int producers in producerCounts)
        {
            loads.AddRange(await Loads.MeasureAsync(
                [.. All().Where(way => only.Length == 0 || way.Name == ByHand
                    || only.Any(part => way.Name.Contains(part, StringComparison.OrdinalIgnoreCase)))],
                producers, rounds, static (_, elapsed) => elapsed < s_share));
        }

        return loads;
    }

    private static IEnumerable<LoadWay> All() =>
    [
        .. OperatingSystem.IsLinux() ? (LoadWay[])[InPlace("a thread each: pwrite(2), fdatasync(2)", static (handle, record, offset) =>
        {
            Libc.PWriteAll(handle, record, offset);
            _ = Libc.FDataSync((int)handle.DangerousGetHandle()) == 0 ? 0 : throw new IOException("A sync has failed.");
        })] : [],
        InPlace("a thread each: RandomAccess, FlushToDisk", static (handle, record, offset) =>
        {
            RandomAccess.Write(handle, record, offset);
            RandomAccess.FlushToDisk(handle);
        }),
        .. new[] { Preallocated, Growing }.SelectMany(static file => (LoadWay[])
        [
            new(ByHand, file, Blocks: false, (path, _) => new(GroupCommit(path, file == Preallocated))),
            new("FilePipeWriter, shared under a lock", file, Blocks: false, (path, _) => SharedWriterAsync(path, file == Preallocated)),
            new("Pipelines.File.Journal", file, Blocks: false, (path, _) => JournalAsync(path, file == Preallocated)),
            new("FasterLog", file, Blocks: false, (path, callers) => new(FasterLog(path, callers, file == Preallocated))),
        ]),
        new("RocksDB, sync", Growing, Blocks: true, static (path, _) => new(RocksDatabase(path))),
        new("SQLite, WAL, synchronous=FULL", Growing, Blocks: true, static (path, callers) => new(Sqlite(path, callers))),
    ];

    // A file whose blocks are there and on the device, to be overwritten.
    private static void Preallocate(string path, long length)
    {
        using SafeFileHandle handle = File.OpenHandle(path, FileMode.CreateNew, FileAccess.Write);
        byte[] zeros = new byte[MiB];
        for (long offset = 0; offset < length; offset += zeros.Length)
        {
            RandomAccess.Write(handle, zeros, offset);
        }

        RandomAccess.FlushToDisk(handle);
    }

    /// <summary>Each producer writes into a place of its own in one preallocated file, again and again, and syncs.</summary>
    private static LoadWay InPlace(string name, Action<SafeFileHandle, byte[], long> commit) => new(
        name,
        Preallocated,
        Blocks: true,
        (path, callers) =>
        {
            const long Place = 4 * MiB;
            long[] next = new long[callers];
            Preallocate(path, callers * Place);
            SafeFileHandle handle = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite);
            return new(new OpenLoad(
                caller =>
                {
                    long offset = next[caller];
                    next[caller] = (offset + RecordSize) % Place;
                    commit(handle, s_records[caller], (caller * Place) + offset);
                    return default;
                },
                () => Close(handle)));
        });

    /// <summary>What one writes by hand: producers queue records, one loop writes all that wait, syncs once, and completes them.</summary>
    private static OpenLoad GroupCommit(string path, bool isPreallocated)
    {
        Channel<(byte[] Record, TaskCompletionSource Committed)> records
            = Channel.CreateUnbounded<(byte[] Record, TaskCompletionSource Committed)>(new UnboundedChannelOptions { SingleReader = true });
        if (isPreallocated)
        {
            Preallocate(path, PreallocatedLength);
        }

        FileStream stream = new(path, FileMode.OpenOrCreate, FileAccess.Write, FileShare.Read, bufferSize: 64 * 1024);
        Task loop = Task.Run(WriteAsync);
        return new(
            caller =>
            {
                TaskCompletionSource committed = new(TaskCreationOptions.RunContinuationsAsynchronously);
                records.Writer.TryWrite((s_records[caller], committed));
                return new ValueTask(committed.Task);
            },
            async () =>
            {
                records.Writer.Complete();
                await loop;
                await stream.DisposeAsync();
            })
        {
            BeginRoundAsync = () =>
            {
                stream.Position = isPreallocated ? 0 : stream.Position;
                return default;
            },
        };

        async Task WriteAsync()
        {
            List<TaskCompletionSource> waiting = [];
            while (await records.Reader.WaitToReadAsync())
            {
                while (records.Reader.TryRead(out (byte[] Record, TaskCompletionSource Committed) next))
                {
                    stream.Write(next.Record);
                    waiting.Add(next.Committed);
                }

                stream.Flush(flushToDisk: true);
                waiting.ForEach(committed => committed.SetResult());
                waiting.Clear();
            }
        }
    }

    /// <summary>All producers share one writer under a lock, and each waits for its own flush.</summary>
    private static async ValueTask<OpenLoad> SharedWriterAsync(string path, bool isPreallocated)
    {
        FilePipeWriterOptions options = new() { Mode = FileMode.OpenOrCreate, FlushGuarantee = FlushGuarantee.Durable };
        Lock turn = new();
        if (isPreallocated)
        {
            Preallocate(path, PreallocatedLength);
        }

        FilePipeWriter writer = await FilePipeWriter.OpenAsync(path, options);
        return new(
            async caller =>
            {
                ValueTask<FlushResult> flush;
                lock (turn)
                {
                    writer.Write(s_records[caller]);
                    flush = writer.FlushAsync();
                }

                await flush;
            },
            () => writer.CompleteAsync())
        {
            // One that overwrites begins at the beginning again.
            BeginRoundAsync = async () =>
            {
                if (isPreallocated)
                {
                    await writer.CompleteAsync();
                    writer = await FilePipeWriter.OpenAsync(path, options);
                }
            },
        };
    }

    private static async ValueTask<OpenLoad> JournalAsync(string path, bool isPreallocated)
    {
        Journal journal = await Journal.OpenAsync(path, new JournalOptions { PreallocateSegments = isPreallocated });
        return new(async caller => await journal.AppendAsync(s_records[caller]), journal.DisposeAsync);
    }

    /// <summary>FASTER's log, with checksums. Of its ways to commit, the one that is faster here with as many producers.</summary>
    private static OpenLoad FasterLog(string path, int callers, bool isPreallocated)
    {
        const int SegmentBits = 28;
        Directory.CreateDirectory(path);
        IDevice device = Devices.CreateLogDevice(Path.Combine(path, "log"), preallocateFile: isPreallocated,
            capacity: isPreallocated ? 1L << SegmentBits : Devices.CAPACITY_UNSPECIFIED);
        FasterLogSettings settings = new()
        {
            LogDevice = device,
            SegmentSizeBits = SegmentBits,
            LogChecksum = LogChecksumType.PerEntry,
        };
        bool hasLoop = callers > 1;
        if (!hasLoop)
        {
            settings.AutoCommit = true;
            settings.LogCommitPolicy = LogCommitPolicy.MaxParallel(1);
        }

        FasterLog log = new(settings);
        Task loop = Task.CompletedTask;
        bool isOver = false;
        return new(async caller => await log.EnqueueAndWaitForCommitAsync(s_records[caller]), () => Close(log, device))
        {
            BeginRoundAsync = () =>
            {
                Volatile.Write(ref isOver, false);
                loop = hasLoop ? Task.Run(LoopAsync) : Task.CompletedTask;
                return default;
            },
            EndRoundAsync = async () =>
            {
                Volatile.Write(ref isOver, true);
                await loop;
            },
        };

        async Task LoopAsync()
        {
            while (!Volatile.Read(ref isOver))
            {
                await log.CommitAsync();
            }
        }
    }

    /// <summary>RocksDB's own log, with <c>WriteOptions.sync</c>: it groups the writers that wait.</summary>
    private static OpenLoad RocksDatabase(string path)
    {
        RocksDb database = RocksDb.Open(new DbOptions().SetCreateIfMissing(true).SetRecycleLogFileNum(4), path);
        WriteOptions options = new WriteOptions().SetSync(true);
        long last = 0;
        return new(
            caller =>
            {
                Span<byte> key = stackalloc byte[sizeof(long)];
                BinaryPrimitives.WriteInt64BigEndian(key, Interlocked.Increment(ref last));
                database.Put(key, s_records[caller], null, options);
                return default;
            },
            () => Close(database));
    }

    /// <summary>SQLite in WAL mode, with a sync at every commit, a connection for each producer.</summary>
    private static OpenLoad Sqlite(string path, int callers)
    {
        (SqliteConnection Connection, SqliteCommand Insert)[] producers = [.. Enumerable.Range(0, callers).Select(caller =>
        {
            SqliteConnection connection = new($"Data Source={path};Pooling=False;Default Timeout=60");
            connection.Open();
            using SqliteCommand prepare = connection.CreateCommand();
            prepare.CommandText = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
                + "CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, content BLOB)";
            _ = prepare.ExecuteNonQuery();
            SqliteCommand insert = connection.CreateCommand();
            insert.CommandText = "INSERT INTO records (content) VALUES ($content)";
            insert.Parameters.AddWithValue("$content", s_records[caller]);
            insert.Prepare();
            return (connection, insert);
        })];
        return new(
            caller =>
            {
                _ = producers[caller].Insert.ExecuteNonQuery();
                return default;
            },
            () => Close([.. producers.SelectMany(producer => (IDisposable[])[producer.Insert, producer.Connection])]));
    }

    private static ValueTask Close(params IDisposable[] all)
    {
        Array.ForEach(all, static one => one.Dispose());
        return default;
    }
}
