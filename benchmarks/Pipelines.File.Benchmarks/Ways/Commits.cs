using System.Buffers;
using System.Buffers.Binary;
using System.Globalization;
using System.IO.Pipelines;
using System.Threading.Channels;
using FASTER.core;
using Microsoft.Data.Sqlite;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
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
        .. OperatingSystem.IsLinux() ? (LoadWay[])[new InPlace("a thread each: pwrite(2), fdatasync(2)", static (handle, record, offset) =>
        {
            Libc.PWriteAll(handle, record, offset);
            _ = Libc.FDataSync((int)handle.DangerousGetHandle()) == 0 ? 0 : throw new IOException("A sync has failed.");
        })] : [],
        new InPlace("a thread each: RandomAccess, FlushToDisk", static (handle, record, offset) =>
        {
            RandomAccess.Write(handle, record, offset);
            RandomAccess.FlushToDisk(handle);
        }),
        .. new[] { Preallocated, Growing }.SelectMany(static file => (LoadWay[])
            [new GroupCommit(file), new SharedWriter(file), new JournalWay(file), new FasterLogWay(file)]),
        new RocksDbWay(), new SqliteWay(),
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
    private sealed class InPlace(string name, Action<SafeFileHandle, byte[], long> commit) : LoadWay(name, Preallocated, blocks: true)
    {
        private const long Place = 4 * MiB;

        private long[] _next = [];
        private SafeFileHandle _handle = null!;

        internal override ValueTask OpenAsync(string path, int callers)
        {
            _next = new long[callers];
            Preallocate(path, callers * Place);
            _handle = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite);
            return default;
        }

        internal override ValueTask OperateAsync(int caller)
        {
            long offset = _next[caller];
            _next[caller] = (offset + RecordSize) % Place;
            commit(_handle, s_records[caller], (caller * Place) + offset);
            return default;
        }

        public override ValueTask DisposeAsync()
        {
            _handle.Dispose();
            return default;
        }
    }

    /// <summary>What one writes by hand: producers queue records, one loop writes all that wait, syncs once, and completes them.</summary>
    private sealed class GroupCommit(string file) : LoadWay(ByHand, file, blocks: false)
    {
        private readonly Channel<(byte[] Record, TaskCompletionSource Committed)> _records
            = Channel.CreateUnbounded<(byte[] Record, TaskCompletionSource Committed)>(new UnboundedChannelOptions { SingleReader = true });

        private FileStream _stream = null!;
        private Task _loop = null!;

        internal override ValueTask OpenAsync(string path, int callers)
        {
            if (Kind == Preallocated)
            {
                Preallocate(path, PreallocatedLength);
            }

            _stream = new FileStream(path, FileMode.OpenOrCreate, FileAccess.Write, FileShare.Read, bufferSize: 64 * 1024);
            _loop = Task.Run(WriteAsync);
            return default;
        }

        internal override ValueTask BeginRoundAsync()
        {
            _stream.Position = Kind == Preallocated ? 0 : _stream.Position;
            return default;
        }

        internal override ValueTask OperateAsync(int caller)
        {
            TaskCompletionSource committed = new(TaskCreationOptions.RunContinuationsAsynchronously);
            _records.Writer.TryWrite((s_records[caller], committed));
            return new ValueTask(committed.Task);
        }

        public override async ValueTask DisposeAsync()
        {
            _records.Writer.Complete();
            await _loop;
            await _stream.DisposeAsync();
        }

        private async Task WriteAsync()
        {
            List<TaskCompletionSource> waiting = [];
            while (await _records.Reader.WaitToReadAsync())
            {
                while (_records.Reader.TryRead(out (byte[] Record, TaskCompletionSource Committed) next))
                {
                    _stream.Write(next.Record);
                    waiting.Add(next.Committed);
                }

                _stream.Flush(flushToDisk: true);
                waiting.ForEach(committed => committed.SetResult());
                waiting.Clear();
            }
        }
    }

    /// <summary>All producers share one writer under a lock, and each waits for its own flush.</summary>
    private sealed class SharedWriter(string file) : LoadWay("FilePipeWriter, shared under a lock", file, blocks: false)
    {
        private readonly Lock _lock = new();
        private string _path = "";
        private FilePipeWriter _writer = null!;

        internal override async ValueTask OpenAsync(string path, int callers)
        {
            _path = path;
            if (Kind == Preallocated)
            {
                Preallocate(path, PreallocatedLength);
            }

            _writer = await CreateAsync();
        }

        // One that overwrites begins at the beginning again.
        internal override async ValueTask BeginRoundAsync()
        {
            if (Kind == Preallocated)
            {
                await _writer.CompleteAsync();
                _writer = await CreateAsync();
            }
        }

        internal override async ValueTask OperateAsync(int caller)
        {
            ValueTask<FlushResult> flush;
            lock (_lock)
            {
                _writer.Write(s_records[caller]);
                flush = _writer.FlushAsync();
            }

            await flush;
        }

        public override ValueTask DisposeAsync() => _writer.CompleteAsync();

        private ValueTask<FilePipeWriter> CreateAsync() => FilePipeWriter.OpenAsync(
            _path, new FilePipeWriterOptions { Mode = FileMode.OpenOrCreate, FlushGuarantee = FlushGuarantee.Durable });
    }

    private sealed class JournalWay(string file) : LoadWay("Pipelines.File.Journal", file, blocks: false)
    {
        private Journal _journal = null!;

        internal override async ValueTask OpenAsync(string path, int callers)
            => _journal = await Journal.OpenAsync(path, new JournalOptions { PreallocateSegments = Kind == Preallocated });

        internal override async ValueTask OperateAsync(int caller) => await _journal.AppendAsync(s_records[caller]);

        public override ValueTask DisposeAsync() => _journal.DisposeAsync();
    }

    /// <summary>FASTER's log, with checksums. Of its ways to commit, the one that is faster here with as many producers.</summary>
    private sealed class FasterLogWay(string file) : LoadWay("FasterLog", file, blocks: false)
    {
        private const int SegmentBits = 28;

        private IDevice? _device;
        private FasterLog? _log;
        private Task _loop = Task.CompletedTask;
        private bool _hasLoop;
        private volatile bool _isOver;

        internal override ValueTask OpenAsync(string path, int callers)
        {
            Directory.CreateDirectory(path);
            bool isPreallocated = Kind == Preallocated;
            _device = Devices.CreateLogDevice(Path.Combine(path, "log"), preallocateFile: isPreallocated,
                capacity: isPreallocated ? 1L << SegmentBits : Devices.CAPACITY_UNSPECIFIED);
            FasterLogSettings settings = new()
            {
                LogDevice = _device,
                SegmentSizeBits = SegmentBits,
                LogChecksum = LogChecksumType.PerEntry,
            };
            _hasLoop = callers > 1;
            if (!_hasLoop)
            {
                settings.AutoCommit = true;
                settings.LogCommitPolicy = LogCommitPolicy.MaxParallel(1);
            }

            _log = new FasterLog(settings);
            return default;
        }

        internal override ValueTask BeginRoundAsync()
        {
            _isOver = false;
            _loop = _hasLoop ? Task.Run(LoopAsync) : Task.CompletedTask;
            return default;
        }

        internal override async ValueTask EndRoundAsync()
        {
            _isOver = true;
            await _loop;
        }

        internal override async ValueTask OperateAsync(int caller) => await _log!.EnqueueAndWaitForCommitAsync(s_records[caller]);

        public override ValueTask DisposeAsync()
        {
            _log?.Dispose();
            _device?.Dispose();
            return default;
        }

        private async Task LoopAsync()
        {
            while (!_isOver)
            {
                await _log!.CommitAsync();
            }
        }
    }

    /// <summary>RocksDB's own log, with <c>WriteOptions.sync</c>: it groups the writers that wait.</summary>
    private sealed class RocksDbWay() : LoadWay("RocksDB, sync", Growing, blocks: true)
    {
        private RocksDb? _database;
        private WriteOptions _options = null!;
        private long _key;

        internal override ValueTask OpenAsync(string path, int callers)
        {
            _database = RocksDb.Open(new DbOptions().SetCreateIfMissing(true).SetRecycleLogFileNum(4), path);
            _options = new WriteOptions().SetSync(true);
            return default;
        }

        internal override ValueTask OperateAsync(int caller)
        {
            Span<byte> key = stackalloc byte[sizeof(long)];
            BinaryPrimitives.WriteInt64BigEndian(key, Interlocked.Increment(ref _key));
            _database!.Put(key, s_records[caller], null, _options);
            return default;
        }

        public override ValueTask DisposeAsync()
        {
            _database?.Dispose();
            return default;
        }
    }

    /// <summary>SQLite in WAL mode, with a sync at every commit, a connection for each producer.</summary>
    private sealed class SqliteWay() : LoadWay("SQLite, WAL, synchronous=FULL", Growing, blocks: true)
    {
        private (SqliteConnection Connection, SqliteCommand Insert)[] _producers = [];

        internal override ValueTask OpenAsync(string path, int callers)
        {
            _producers = [.. Enumerable.Range(0, callers).Select(caller =>
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
            return default;
        }

        internal override ValueTask OperateAsync(int caller)
        {
            _ = _producers[caller].Insert.ExecuteNonQuery();
            return default;
        }

        public override async ValueTask DisposeAsync()
        {
            foreach ((SqliteConnection connection, SqliteCommand insert) in _producers)
            {
                await insert.DisposeAsync();
                await connection.DisposeAsync();
            }
        }
    }
}
