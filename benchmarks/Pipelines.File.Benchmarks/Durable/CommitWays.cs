using FilePipelinesBenchmarks.Interop;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Durable;

/// <summary>Every way to commit; <see cref="GroupCommitByHand"/> is the baseline of those with such a file.</summary>
internal static partial class CommitWays
{
    private const long MiB = 1024 * 1024;

    internal static IReadOnlyList<Func<CommitWay>> All { get; } = MakeAll();

    private static List<Func<CommitWay>> MakeAll()
    {
        List<Func<CommitWay>> ways = [];
        if (OperatingSystem.IsLinux())
        {
            ways.Add(() => new SystemCalls());
        }

        ways.Add(() => new FlushToDisk());
        ways.Add(() => new GroupCommitByHand(CommitFile.Preallocated));
        ways.Add(() => new SharedWriterCommits(CommitFile.Preallocated));
        ways.Add(() => new GroupCommitByHand(CommitFile.Growing));
        ways.Add(() => new SharedWriterCommits(CommitFile.Growing));
        ways.Add(() => new JournalCommits(CommitFile.Preallocated));
        ways.Add(() => new JournalCommits(CommitFile.Growing));
        AddSqlite(ways);
        AddLogPeers(ways);
        return ways;
    }

    static partial void AddSqlite(List<Func<CommitWay>> ways);

    static partial void AddLogPeers(List<Func<CommitWay>> ways);

    /// <summary>Each producer writes into a place of its own in one preallocated file, again and again, and syncs.</summary>
    private abstract class InPlace(string name) : CommitWay(name, CommitFile.Preallocated)
    {
        private const long Place = 4 * MiB;

        private long[] _next = [];

        protected SafeFileHandle Handle { get; private set; } = null!;

        internal override Task OpenAsync(string path, int producers)
        {
            _next = new long[producers];
            Handle = System.IO.File.OpenHandle(path, FileMode.CreateNew, FileAccess.ReadWrite);
            byte[] zeros = new byte[MiB];
            for (long offset = 0; offset < producers * Place; offset += zeros.Length)
            {
                RandomAccess.Write(Handle, zeros, offset);
            }

            RandomAccess.FlushToDisk(Handle);
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
        protected override unsafe void Commit(byte[] record, long offset)
        {
            int descriptor = (int)Handle.DangerousGetHandle();
            fixed (byte* start = record)
            {
                if (Libc.PWrite(descriptor, start, (nuint)record.Length, offset) != record.Length || Libc.FDataSync(descriptor) != 0)
                {
                    throw new IOException("A write or a sync has failed.");
                }
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
