using System.Diagnostics;
using System.Globalization;
using System.IO.Pipelines;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelines.Benchmarks;

/// <summary>
/// Operations that each have to wait for the device, many at once: cold reads of 4 KiB at random places, or durable flushes of 512 B to a
/// file each. A probe beside them queues unrelated work items. Linux.
/// </summary>
internal static class Waits
{
    private const long FileLength = 256L * 1024 * 1024;
    private const int PieceSize = 4096;
    private const int FlushSize = 512;
    private const int Reads = 16_384;
    private const int Flushes = 8192;

    private static readonly string[] s_kinds = ["reads", "flushes", "fifos"];

    /// <summary>How many operate at once.</summary>
    internal static IReadOnlyList<int> Counts { get; } = [8, 64, 256];

    // The first of each is the baseline: every worker blocks a thread of its own. The others are tasks of the thread pool.
    private static readonly (string Name, bool HasOwnThreads, Func<IntegerFile, int, Worker> Make)[] s_reads =
    [
        ("a thread each", true, static (file, worker) => new Read(file, worker, static (handle, buffer, offset)
            => new(RandomAccess.Read(handle, buffer.Span, offset)))),
        ("RandomAccess.ReadAsync", false, static (file, worker) => new Read(file, worker, static (handle, buffer, offset)
            => RandomAccess.ReadAsync(handle, buffer, offset))),
        ("FilePipeReader", false, static (file, worker) => new PipeRead(file, worker)),
    ];

    private static readonly (string Name, bool HasOwnThreads, Func<string, Worker> Make)[] s_flushes =
    [
        ("a thread each", true, static path => new BlockingFlush(path)),
        ("FileStream, Flush(true)", false, static path => new StreamFlush(path)),
        ("FilePipeWriter", false, static path => new PipeFlush(path)),
    ];

    /// <summary><c>waits [reads|flushes|fifos] [--at-once N] [--rounds N]</c>.</summary>
    internal static async Task<int> RunAsync(string[] arguments)
    {
        Arguments given = new(arguments, "waits [reads|flushes|fifos] [--at-once N] [--rounds N]");
        int rounds = given.Number("--rounds", 5);
        int atOnce = given.Number("--at-once", 0);
        string[] kinds = [.. s_kinds.Where(given.Flag)];
        if (given.AreWrong())
        {
            return 2;
        }

        foreach (bool isReads in (bool[])[true, false])
        {
            bool isLeftOut = kinds.Length > 0 && !kinds.Contains(isReads ? "reads" : "flushes");
            foreach (int count in isLeftOut ? [] : atOnce > 0 ? [atOnce] : Counts)
            {
                foreach ((Load load, Disturbance others) in await MeasureAsync(isReads, count, rounds))
                {
                    Console.WriteLine(string.Create(
                        CultureInfo.InvariantCulture,
                        $"{(isReads ? "reads" : "flushes")} {count,4} {load.Way,-24} {load.PerSecond.Median,8:0}/s "
                        + $"{Figures.Ratio(load.Ratio)}  p50 {load.Median / 1000:0.000} p99 {load.NinetyNinth / 1000:0.000} ms  "
                        + $"cpu {others.CpuMicroseconds:0.0} us  delay {others.Median:0.000} {others.NinetyNinth:0.000} "
                        + $"{others.Longest:0.000} ms  pool {others.PoolThreads}"));
                }
            }
        }

        foreach (int count in kinds.Length == 0 || kinds.Contains("fifos") ? IdleFifos.Counts : [])
        {
            Console.WriteLine($"fifos {count,5}: a wake-up {Figures.Ratio(await IdleFifos.RunAsync(count))} us");
        }

        return 0;
    }

    /// <summary>Measures every way, in turns.</summary>
    /// <param name="isReads">Reads; else flushes.</param>
    /// <param name="atOnce">How many operate at once.</param>
    /// <param name="rounds">How often each way is measured.</param>
    internal static async Task<IReadOnlyList<(Load Load, Disturbance Others)>> MeasureAsync(bool isReads, int atOnce, int rounds)
    {
        using TemporaryFolder folder = new();
        if (isReads)
        {
            PageCache.TouchMemory(folder);
        }

        IntegerFile? file = isReads ? IntegerFile.Make(folder, FileLength) : null;
        int each = (isReads ? Reads : Flushes) / Math.Max(atOnce, 32);
        (string Name, bool HasOwnThreads, Func<int, Worker> Make)[] ways = isReads
            ? [.. s_reads.Select(way => (way.Name, way.HasOwnThreads, (Func<int, Worker>)(worker => way.Make(file!, worker))))]
            : [.. s_flushes.Select(way => (way.Name, way.HasOwnThreads, (Func<int, Worker>)(worker => way.Make(PathOf(worker)))))];
        List<Round>[] measured = [.. ways.Select(_ => new List<Round>())];

        // The first round compiles, and is not counted.
        for (int round = 0; round <= rounds; round++)
        {
            for (int i = 0; i < ways.Length; i++)
            {
                int way = (round + i) % ways.Length;
                if (file is not null)
                {
                    PageCache.Evict(file.Path);
                }

                Round result = await RunAsync([.. Enumerable.Range(0, atOnce).Select(ways[way].Make)], ways[way].HasOwnThreads, each);
                if (!isReads && Enumerable.Range(0, atOnce).Any(worker => new FileInfo(PathOf(worker)).Length != (long)each * FlushSize))
                {
                    throw new InvalidDataException("A file has not got all that was flushed.");
                }

                if (round > 0)
                {
                    measured[way].Add(result);
                }
            }
        }

        return [.. ways.Select((way, index) => Sum(way.Name, atOnce, measured[index], measured[0]))];

        string PathOf(int worker) => folder.PathOf($"flushed-{worker}.bin");
    }

    private static async Task<Round> RunAsync(Worker[] workers, bool haveOwnThreads, int operationsEach)
    {
        double[][] latencies = [.. workers.Select(_ => new double[operationsEach])];
        using ThreadPoolProbe probe = new();
        using ManualResetEventSlim start = new();
        TaskCompletionSource startTasks = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Task[] running = [.. workers.Select((worker, index) => haveOwnThreads
            ? Task.Factory.StartNew(
                () =>
                {
                    start.Wait();
                    WorkAsync(worker, latencies[index]).GetAwaiter().GetResult();
                },
                CancellationToken.None,
                TaskCreationOptions.LongRunning,
                TaskScheduler.Default)
            : Task.Run(async () =>
            {
                await startTasks.Task;
                await WorkAsync(worker, latencies[index]);
            }))];
        TimeSpan cpu = Environment.CpuUsage.TotalTime;
        long begin = Stopwatch.GetTimestamp();
        start.Set();
        startTasks.SetResult();
        await Task.WhenAll(running);
        double seconds = Stopwatch.GetElapsedTime(begin).TotalSeconds;
        cpu = Environment.CpuUsage.TotalTime - cpu;
        IReadOnlyList<double> delays = probe.Stop();
        foreach (Worker worker in workers)
        {
            await worker.DisposeAsync();
        }

        double operations = (double)workers.Length * operationsEach;
        return new Round(operations / seconds, cpu.TotalMicroseconds / operations,
            [.. latencies.SelectMany(each => each)], delays, probe.MostPoolThreads);
    }

    private static async Task WorkAsync(Worker worker, double[] latencies)
    {
        for (int i = 0; i < latencies.Length; i++)
        {
            long begin = Stopwatch.GetTimestamp();
            await worker.OperateAsync();
            latencies[i] = Stopwatch.GetElapsedTime(begin).TotalMicroseconds;
        }
    }

    private static (Load Load, Disturbance Others) Sum(string way, int atOnce, List<Round> rounds, List<Round> baseline)
    {
        double[] latencies = [.. rounds.SelectMany(round => round.Latencies).Order()];
        double[] delays = [.. rounds.SelectMany(round => round.Delays).Order()];
        return (
            new Load(
                way,
                atOnce,
                Spread.Of(rounds.Select(round => round.PerSecond)),
                Spread.Of(rounds.Select((round, index) => round.PerSecond / baseline[index].PerSecond)),
                At(latencies, 0.5),
                At(latencies, 0.99)),
            new Disturbance(
                rounds.Select(round => round.CpuMicroseconds).Order().ElementAt(rounds.Count / 2), At(delays, 0.5), At(delays, 0.99),
                delays[^1], rounds.Max(round => round.PoolThreads)));

        static double At(double[] sorted, double fraction) => sorted[(int)((sorted.Length - 1) * fraction)];
    }

    private sealed record Round(
        double PerSecond, double CpuMicroseconds, double[] Latencies, IReadOnlyList<double> Delays, int PoolThreads);

    /// <summary>What the operations do to the rest of the program.</summary>
    /// <param name="CpuMicroseconds">Of the whole process, for one operation.</param>
    /// <param name="Median">Milliseconds that an unrelated work item waited.</param>
    /// <param name="NinetyNinth">Milliseconds: one of a hundred waited longer.</param>
    /// <param name="Longest">Milliseconds.</param>
    /// <param name="PoolThreads">The most threads that the thread pool had.</param>
    internal sealed record Disturbance(double CpuMicroseconds, double Median, double NinetyNinth, double Longest, int PoolThreads);

    /// <summary>One of those that operate at once: its file is open from the constructor until it is disposed.</summary>
    private abstract class Worker : IAsyncDisposable
    {
        /// <summary>One operation: done when its bytes are here, or on the device.</summary>
        internal abstract ValueTask OperateAsync();

        public abstract ValueTask DisposeAsync();
    }

    /// <summary>Reads pieces at places of its own, which are the same in every run.</summary>
    private class Read(IntegerFile file, int worker, Func<SafeFileHandle, Memory<byte>, long, ValueTask<int>> readAsync) : Worker
    {
        private readonly Random _places = new(worker);
        private readonly byte[] _buffer = new byte[PieceSize];

        protected SafeFileHandle Handle { get; } = File.OpenHandle(
            file.Path, FileMode.Open, FileAccess.Read, FileShare.Read, FileOptions.RandomAccess);

        internal override async ValueTask OperateAsync()
        {
            long offset = NextOffset();
            int length = await readAsync(Handle, _buffer, offset);
            Check(offset, _buffer.AsSpan(0, length));
        }

        public override ValueTask DisposeAsync()
        {
            Handle.Dispose();
            return default;
        }

        protected long NextOffset() => _places.NextInt64(file.Length / PieceSize) * PieceSize;

        /// <summary>A piece begins and ends with the integers that stand there.</summary>
        protected static void Check(long offset, ReadOnlySpan<byte> piece)
        {
            if (piece.Length != PieceSize || BitConverter.ToInt64(piece) != offset / sizeof(long)
                || BitConverter.ToInt64(piece[^sizeof(long)..]) != ((offset + PieceSize) / sizeof(long)) - 1)
            {
                throw new InvalidDataException($"Not the bytes at offset {offset}.");
            }
        }
    }

    /// <summary>A reader of this library for every piece.</summary>
    private sealed class PipeRead(IntegerFile file, int worker) : Read(file, worker, static (_, _, _) => default)
    {
        internal override async ValueTask OperateAsync()
        {
            long offset = NextOffset();
            FilePipeReader reader = FilePipeReader.Create(
                Handle, new() { Offset = offset, Length = PieceSize, BufferSize = PieceSize, LeaveOpen = true });
            ReadResult result = await reader.ReadAtLeastAsync(PieceSize);
            Check(offset, result.Buffer.FirstSpan);
            await reader.CompleteAsync();
        }
    }

    /// <summary>A writer of this library.</summary>
    private sealed class PipeFlush(string path) : Worker
    {
        private readonly byte[] _record = new byte[FlushSize];
        private readonly FilePipeWriter _writer = FilePipeWriter.Create(path, new() { FlushGuarantee = FlushGuarantee.Durable });

        internal override async ValueTask OperateAsync() => await _writer.WriteAsync(_record);

        public override ValueTask DisposeAsync() => _writer.CompleteAsync();
    }

    /// <summary>FileStream.WriteAsync, FlushAsync and Flush(true): there is no asynchronous way to the device.</summary>
    private sealed class StreamFlush(string path) : Worker
    {
        private readonly byte[] _record = new byte[FlushSize];
        private readonly FileStream _stream = new(path, FileMode.Create, FileAccess.Write, FileShare.Read, 4096, FileOptions.Asynchronous);

        internal override async ValueTask OperateAsync()
        {
            await _stream.WriteAsync(_record);
            await _stream.FlushAsync();
            _stream.Flush(flushToDisk: true);
        }

        public override ValueTask DisposeAsync() => _stream.DisposeAsync();
    }

    /// <summary>RandomAccess.Write and FlushToDisk, which block.</summary>
    private sealed class BlockingFlush(string path) : Worker
    {
        private readonly byte[] _record = new byte[FlushSize];
        private readonly SafeFileHandle _handle = File.OpenHandle(path, FileMode.Create, FileAccess.Write);
        private long _offset;

        internal override ValueTask OperateAsync()
        {
            RandomAccess.Write(_handle, _record, _offset);
            _offset += _record.Length;
            RandomAccess.FlushToDisk(_handle);
            return default;
        }

        public override ValueTask DisposeAsync()
        {
            _handle.Dispose();
            return default;
        }
    }
}
