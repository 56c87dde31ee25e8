using System.Buffers;
using System.Buffers.Binary;
using System.Diagnostics;
using System.Globalization;
using System.IO.Pipelines;
using System.Threading.Channels;
using FASTER.core;
using Microsoft.Data.Sqlite;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using RocksDbSharp;

namespace FilePipelines.Benchmarks;

/// <summary>What the file is like that records go to: it decides what a sync has to write.</summary>
internal enum CommitFile
{
    /// <summary>It grows with each record, so a sync writes the file system's journal, too.</summary>
    Growing,

    /// <summary>It has its blocks already, and they are overwritten: a sync writes the data alone.</summary>
    Preallocated,
}

/// <summary>A way to put records on the device one by one, used by several producers at once.</summary>
internal abstract class CommitWay(string name, CommitFile file) : IDisposable
{
    /// <summary>Bytes of one record.</summary>
    internal const int RecordSize = 512;

    internal string Name { get; } = name;

    /// <summary>What the file is like that the records go to.</summary>
    internal CommitFile File { get; } = file;

    /// <summary>Makes its file.</summary>
    internal abstract Task OpenAsync(string path, int producers);

    /// <summary>Before each round, not measured: one that overwrites begins at the beginning again.</summary>
    internal virtual ValueTask BeginRoundAsync() => default;

    /// <summary>After each round: nothing of it goes on beside the other ways.</summary>
    internal virtual ValueTask EndRoundAsync() => default;

    /// <summary>Returns when the record is on the device. Called by one producer at a time for each number.</summary>
    internal abstract ValueTask CommitAsync(int producer, byte[] record);

    public abstract void Dispose();
}

/// <summary>
/// <c>durable [--rounds N]</c>: commits a second and how long one takes, with 1, 8 and 64 producers, every way in the same rounds. A
/// producer is a thread of its own where the way blocks it, and a task on it where it does not.
/// </summary>
internal static class Commits
{
    /// <summary>More than any way writes in one round.</summary>
    internal const long PreallocatedLength = 192 * MiB;

    private const long MiB = 1024 * 1024;
    private const int DefaultRounds = 9;

    private static readonly TimeSpan s_share = TimeSpan.FromMilliseconds(200);

    internal static IReadOnlyList<int> ProducerCounts { get; } = [1, 8, 64];

    internal static async Task<int> RunAsync(string[] arguments)
    {
        Arguments given = new(arguments, "durable [--rounds N] [--only PART-OF-A-NAME,...]");
        int rounds = given.Number("--rounds", DefaultRounds);
        string[] only = given.Text("--only")?.Split(',') ?? [];
        if (given.AreWrong())
        {
            return 2;
        }

        Console.WriteLine("way; file; producers; commits/s (quartiles); ratio to by hand; p50 µs; p99 µs");
        foreach ((CommitFile file, Load load) in await MeasureAsync(rounds, ProducerCounts, null, only))
        {
            Console.WriteLine(string.Create(
                CultureInfo.InvariantCulture,
                $"{load.Way}; {file}; {load.AtOnce}; {load.PerSecond.Median:N0} ({load.PerSecond.LowerQuartile:N0}–"
                + $"{load.PerSecond.UpperQuartile:N0}); {Figures.Ratio(load.Ratio)}; {load.Median:0}; {load.NinetyNinth:0}"));
        }

        return 0;
    }

    /// <summary>Every way with every number of producers.</summary>
    /// <param name="rounds">How often each is measured.</param>
    /// <param name="producerCounts">How many producers commit at once.</param>
    /// <param name="onShare">Told how much of it is done, 0 to 1.</param>
    /// <param name="only">Parts of the names of the ways, which come with the way by hand; none: all ways.</param>
    internal static async Task<IReadOnlyList<(CommitFile File, Load Load)>> MeasureAsync(
        int rounds, IReadOnlyList<int> producerCounts, Action<double>? onShare, params string[] only)
    {
        List<(CommitFile File, Load Load)> figures = [];
        foreach (int producers in producerCounts)
        {
            using TemporaryFolder folder = new();
            CommitWay[] ways =
            [
                .. MakeAll().Where(way => only.Length == 0 || way is GroupCommitByHand
                    || only.Any(part => way.Name.Contains(part, StringComparison.OrdinalIgnoreCase))),
            ];
            try
            {
                for (int i = 0; i < ways.Length; i++)
                {
                    await ways[i].OpenAsync(folder.PathOf($"commits-{i}"), producers);

                    // The just-in-time compiler, and the file's first blocks.
                    await ways[i].BeginRoundAsync();
                    await RunAsync(ways[i], producers, s_share);
                    await RunAsync(ways[i], producers, s_share);
                    await ways[i].EndRoundAsync();
                }

                List<double>[] perSecond = [.. ways.Select(_ => new List<double>())];
                List<double>[] latencies = [.. ways.Select(_ => new List<double>())];
                for (int round = 0; round < rounds; round++)
                {
                    for (int i = 0; i < ways.Length; i++)
                    {
                        int index = (round + i) % ways.Length;
                        await ways[index].BeginRoundAsync();
                        (double rate, List<double> times) = await RunAsync(ways[index], producers, s_share);
                        await ways[index].EndRoundAsync();
                        perSecond[index].Add(rate);
                        latencies[index].AddRange(times);
                    }

                    onShare?.Invoke((figures.Count + ((double)ways.Length * round / rounds)) / (ways.Length * producerCounts.Count));
                }

                for (int i = 0; i < ways.Length; i++)
                {
                    latencies[i].Sort();
                    figures.Add((ways[i].File, new Load(
                        ways[i].Name,
                        producers,
                        Spread.Of(perSecond[i]),
                        Spread.Of(perSecond[i].Zip(
                            perSecond[Array.FindIndex(ways, way => way is GroupCommitByHand && way.File == ways[i].File)],
                            (own, byHand) => own / byHand)),
                        latencies[i][latencies[i].Count / 2],
                        latencies[i][(int)((latencies[i].Count - 1) * 0.99)])));
                }
            }
            finally
            {
                Array.ForEach(ways, way => way.Dispose());
            }
        }

        return figures;
    }

    private static async Task<(double PerSecond, List<double> Microseconds)> RunAsync(CommitWay way, int producers, TimeSpan duration)
    {
        long start = Stopwatch.GetTimestamp();
        List<double>[] times = await Task.WhenAll(Enumerable.Range(0, producers).Select(producer => Task.Factory.StartNew(
            async () =>
            {
                byte[] record = new byte[CommitWay.RecordSize];
                new Random(producer).NextBytes(record);
                List<double> mine = [];
                do
                {
                    // One at least, also where the thread starts late.
                    long begin = Stopwatch.GetTimestamp();
                    await way.CommitAsync(producer, record);
                    mine.Add(Stopwatch.GetElapsedTime(begin).TotalMicroseconds);
                }
                while (Stopwatch.GetElapsedTime(start) < duration);

                return mine;
            },
            TaskCreationOptions.LongRunning).Unwrap()));
        double seconds = Stopwatch.GetElapsedTime(start).TotalSeconds;
        List<double> all = [.. times.SelectMany(mine => mine)];
        return (all.Count / seconds, all);
    }

    /// <summary>Makes a file whose blocks are there and on the device, to be overwritten.</summary>
    internal static void Preallocate(string path, long length)
    {
        using SafeFileHandle handle = File.OpenHandle(path, FileMode.CreateNew, FileAccess.Write);
        byte[] zeros = new byte[MiB];
        for (long offset = 0; offset < length; offset += zeros.Length)
        {
            RandomAccess.Write(handle, zeros, offset);
        }

        RandomAccess.FlushToDisk(handle);
    }

    // Of those with such a file, GroupCommitByHand is the baseline.
    private static IEnumerable<CommitWay> MakeAll() =>
    [
        .. OperatingSystem.IsLinux() ? (CommitWay[])[new SystemCalls()] : [], new FlushToDisk(),
        .. new[] { CommitFile.Preallocated, CommitFile.Growing }.SelectMany(file => (CommitWay[])
            [new GroupCommitByHand(file), new SharedWriterCommits(file), new JournalCommits(file), new FasterLogCommits(file)]),
        new RocksDbCommits(), new SqliteCommits(),
    ];

    /// <summary>Each producer writes into a place of its own in one preallocated file, again and again, and syncs.</summary>
    private abstract class InPlace(string name) : CommitWay(name, CommitFile.Preallocated)
    {
        private const long Place = 4 * MiB;

        private long[] _next = [];

        protected SafeFileHandle Handle { get; private set; } = null!;

        internal override Task OpenAsync(string path, int producers)
        {
            _next = new long[producers];
            Preallocate(path, producers * Place);
            Handle = System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite);
            return Task.CompletedTask;
        }

        internal override ValueTask CommitAsync(int producer, byte[] record)
        {
            long offset = (producer * Place) + _next[producer];
            _next[producer] = (_next[producer] + record.Length) % Place;
            Commit(record, offset);
            return default;
        }

        public override void Dispose() => Handle.Dispose();

        protected abstract void Commit(byte[] record, long offset);
    }

    private sealed class SystemCalls() : InPlace("a thread each: pwrite(2), fdatasync(2)")
    {
        protected override void Commit(byte[] record, long offset)
        {
            Libc.PWriteAll(Handle, record, offset);
            if (Libc.FDataSync((int)Handle.DangerousGetHandle()) != 0)
            {
                throw new IOException("A sync has failed.");
            }
        }
    }

    private sealed class FlushToDisk() : InPlace("a thread each: RandomAccess, FlushToDisk")
    {
        protected override void Commit(byte[] record, long offset)
        {
            RandomAccess.Write(Handle, record, offset);
            RandomAccess.FlushToDisk(Handle);
        }
    }

    private sealed class JournalCommits(CommitFile file) : CommitWay("Pipelines.File.Journal", file)
    {
        private Journal _journal = null!;

        internal override async Task OpenAsync(string path, int producers)
            => _journal = await Journal.OpenAsync(path, new JournalOptions { PreallocateSegments = File == CommitFile.Preallocated });

        internal override async ValueTask CommitAsync(int producer, byte[] record) => await _journal.AppendAsync(record);

        public override void Dispose() => _journal.DisposeAsync().AsTask().GetAwaiter().GetResult();
    }
}

/// <summary>
/// What one writes by hand: producers queue their records, one loop writes all that wait, syncs once, and completes them.
/// </summary>
internal sealed class GroupCommitByHand(CommitFile file) : CommitWay("by hand: Channel, FileStream, one Flush(true)", file)
{
    private readonly Channel<(byte[] Record, TaskCompletionSource Committed)> _records
        = Channel.CreateUnbounded<(byte[] Record, TaskCompletionSource Committed)>(new UnboundedChannelOptions { SingleReader = true });

    private FileStream _stream = null!;
    private Task _loop = null!;

    internal override Task OpenAsync(string path, int producers)
    {
        if (File == CommitFile.Preallocated)
        {
            Commits.Preallocate(path, Commits.PreallocatedLength);
        }

        _stream = new FileStream(path, FileMode.OpenOrCreate, FileAccess.Write, FileShare.Read, bufferSize: 64 * 1024);
        _loop = Task.Run(WriteAsync);
        return Task.CompletedTask;
    }

    internal override ValueTask BeginRoundAsync()
    {
        _stream.Position = File == CommitFile.Preallocated ? 0 : _stream.Position;
        return default;
    }

    internal override ValueTask CommitAsync(int producer, byte[] record)
    {
        TaskCompletionSource committed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _records.Writer.TryWrite((record, committed));
        return new ValueTask(committed.Task);
    }

    public override void Dispose()
    {
        _records.Writer.Complete();
        _loop.GetAwaiter().GetResult();
        _stream.Dispose();
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
internal sealed class SharedWriterCommits(CommitFile file) : CommitWay("FilePipeWriter, shared under a lock", file)
{
    private readonly Lock _lock = new();
    private string _path = "";
    private FilePipeWriter _writer = null!;

    internal override async Task OpenAsync(string path, int producers)
    {
        _path = path;
        if (File == CommitFile.Preallocated)
        {
            Commits.Preallocate(path, Commits.PreallocatedLength);
        }

        _writer = await FilePipeWriter.OpenAsync(
            path, new FilePipeWriterOptions { Mode = FileMode.OpenOrCreate, FlushGuarantee = FlushGuarantee.Durable });
    }

    internal override async ValueTask BeginRoundAsync()
    {
        if (File == CommitFile.Preallocated)
        {
            await _writer.CompleteAsync();
            _writer = await FilePipeWriter.OpenAsync(
                _path, new FilePipeWriterOptions { Mode = FileMode.Open, FlushGuarantee = FlushGuarantee.Durable });
        }
    }

    internal override async ValueTask CommitAsync(int producer, byte[] record)
    {
        ValueTask<FlushResult> flush;
        lock (_lock)
        {
            _writer.Write(record);
            flush = _writer.FlushAsync();
        }

        await flush;
    }

    public override void Dispose() => _writer.Dispose();
}

/// <summary>FASTER's log, with checksums. Of its ways to commit, the one that is faster here with as many producers.</summary>
internal sealed class FasterLogCommits(CommitFile file) : CommitWay("FasterLog", file)
{
    private const int SegmentBits = 28;

    private IDevice? _device;
    private FasterLog? _log;
    private Task _loop = Task.CompletedTask;
    private bool _hasLoop;
    private volatile bool _isOver;

    internal override Task OpenAsync(string path, int producers)
    {
        Directory.CreateDirectory(path);
        _device = Devices.CreateLogDevice(
            Path.Combine(path, "log"), preallocateFile: File == CommitFile.Preallocated,
            capacity: File == CommitFile.Preallocated ? 1L << SegmentBits : Devices.CAPACITY_UNSPECIFIED);
        FasterLogSettings settings = new()
        {
            LogDevice = _device,
            SegmentSizeBits = SegmentBits,
            LogChecksum = LogChecksumType.PerEntry,
        };
        if (producers == 1)
        {
            settings.AutoCommit = true;
            settings.LogCommitPolicy = LogCommitPolicy.MaxParallel(1);
        }

        _log = new FasterLog(settings);
        _hasLoop = producers > 1;
        return Task.CompletedTask;
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

    internal override async ValueTask CommitAsync(int producer, byte[] record) => await _log!.EnqueueAndWaitForCommitAsync(record);

    public override void Dispose()
    {
        _log?.Dispose();
        _device?.Dispose();
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
internal sealed class RocksDbCommits() : CommitWay("RocksDB, sync", CommitFile.Growing)
{
    private RocksDb? _database;
    private WriteOptions _options = null!;
    private long _key;

    internal override Task OpenAsync(string path, int producers)
    {
        DbOptions options = new DbOptions().SetCreateIfMissing(true).SetRecycleLogFileNum(4);
        _database = RocksDb.Open(options, path);
        _options = new WriteOptions().SetSync(true);
        return Task.CompletedTask;
    }

    internal override ValueTask CommitAsync(int producer, byte[] record)
    {
        Span<byte> key = stackalloc byte[sizeof(long)];
        BinaryPrimitives.WriteInt64BigEndian(key, Interlocked.Increment(ref _key));
        _database!.Put(key, record, null, _options);
        return default;
    }

    public override void Dispose() => _database?.Dispose();
}

/// <summary>SQLite in WAL mode, with a sync at every commit, a connection for each producer.</summary>
internal sealed class SqliteCommits() : CommitWay("SQLite, WAL, synchronous=FULL", CommitFile.Growing)
{
    private (SqliteConnection Connection, SqliteCommand Insert)[] _producers = [];

    internal override Task OpenAsync(string path, int producers)
    {
        _producers = [.. Enumerable.Range(0, producers).Select(_ =>
        {
            SqliteConnection connection = new($"Data Source={path};Pooling=False;Default Timeout=60");
            connection.Open();
            foreach (string sql in (string[])["PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL",
                "CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, content BLOB)"])
            {
                using SqliteCommand command = connection.CreateCommand();
                command.CommandText = sql;
                _ = command.ExecuteNonQuery();
            }

            SqliteCommand insert = connection.CreateCommand();
            insert.CommandText = "INSERT INTO records (content) VALUES ($content)";
            insert.Parameters.Add("$content", SqliteType.Blob);
            insert.Prepare();
            return (connection, insert);
        })];
        return Task.CompletedTask;
    }

    internal override ValueTask CommitAsync(int producer, byte[] record)
    {
        SqliteCommand insert = _producers[producer].Insert;
        insert.Parameters[0].Value = record;
        _ = insert.ExecuteNonQuery();
        return default;
    }

    public override void Dispose()
    {
        foreach ((SqliteConnection connection, SqliteCommand insert) in _producers)
        {
            insert.Dispose();
            connection.Dispose();
        }
    }
}
