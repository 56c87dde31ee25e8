using System.Buffers.Binary;
using FASTER.core;
using RocksDbSharp;

namespace FilePipelinesBenchmarks.Durable;

/// <content>Logs of others, each with a sync before it acknowledges. Only with -p:LogPeers=true.</content>
internal static partial class CommitWays
{
    static partial void AddLogPeers(List<Func<CommitWay>> ways)
    {
        ways.Add(() => new FasterLogCommits(CommitFile.Growing));
        ways.Add(() => new FasterLogCommits(CommitFile.Preallocated));
        ways.Add(() => new RocksDbCommits());
    }

    /// <summary>FASTER's log, with checksums. Of its ways to commit, the one that is faster here with as many producers.</summary>
    private sealed class FasterLogCommits(CommitFile file) : CommitWay("FasterLog", file)
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
    private sealed class RocksDbCommits() : CommitWay("RocksDB, sync", CommitFile.Growing)
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
}
