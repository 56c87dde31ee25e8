namespace FilePipelines.Benchmarks;

/// <summary>
/// <c>waits</c>: operations that each wait for the device, many at once: cold reads of 4 KiB at random places, or durable flushes of 512 B
/// to a file each, while unrelated work items are queued; and how long it takes to wake one of many idle FIFOs. Linux.
/// </summary>
internal static class Waits
{
    internal const string Reads = "reads";
    internal const string Flushes = "flushes";
    private const long FileLength = 256L * 1024 * 1024;
    private const int PieceSize = 4096;
    private const int FlushSize = 512;
    private const int WakeUps = 3000;
    private static readonly byte[] s_record = new byte[FlushSize];

    /// <summary>How many operate at once.</summary>
    internal static IReadOnlyList<int> Counts { get; } = [8, 64, 256];

    /// <summary>How many FIFOs are open and waited for.</summary>
    internal static IReadOnlyList<int> FifoCounts { get; } = [100, 3000];

    internal static async Task<int> RunAsync(string[] arguments)
    {
        Arguments given = new(arguments, "waits [reads|flushes|fifos] [--at-once N] [--rounds N]");
        int rounds = given.Number("--rounds", 5);
        int atOnce = given.Number("--at-once", 0);
        string[] all = [Reads, Flushes, "fifos"];
        string[] kinds = [.. all.Where(given.Flag)];
        if (given.AreWrong())
        {
            return 2;
        }

        kinds = kinds.Length == 0 ? all : kinds;
        List<Load> loads = [];
        foreach (string kind in kinds.Except(["fifos"]))
        {
            foreach (int count in atOnce > 0 ? [atOnce] : Counts)
            {
                loads.AddRange(await MeasureAsync(kind, count, rounds));
            }
        }

        Console.Write(ToCsv(loads));
        foreach (int count in kinds.Contains("fifos") ? FifoCounts : [])
        {
            Console.WriteLine($"fifos {count,5}: a wake-up {Figures.Ratio(await WakeFifosAsync(count))} us");
        }

        return 0;
    }

    internal static string ToCsv(IReadOnlyList<Load> loads) => string.Concat(loads.Select(load =>
    {
        Spread ratio = load.Against(loads.First(other => other.Kind == load.Kind && other.AtOnce == load.AtOnce));
        return string.Create(CultureInfo.InvariantCulture, $"{(load.Kind == Reads ? "read" : "flush")},{load.AtOnce},"
            + $"{Figures.Quoted(load.Way)},{load.PerSecond.Median:0},{ratio.LowerQuartile:0.000},{ratio.Median:0.000},"
            + $"{ratio.UpperQuartile:0.000},{Load.At(load.Latencies, 0.5) / 1000:0.000},{Load.At(load.Latencies, 0.99) / 1000:0.000},"
            + $"{load.CpuMicroseconds:0.0},{Load.At(load.Delays, 0.5):0.000},{Load.At(load.Delays, 0.99):0.000},"
            + $"{load.Delays[^1]:0.000},{load.PoolThreads}\n");
    }).Prepend("operation,at_once,method,per_second_median,ratio_lower_quartile,ratio_median,ratio_upper_quartile,"
        + "ms_median,ms_99th_percentile,cpu_us,delay_ms_median,delay_ms_99th_percentile,delay_ms_longest,pool_threads\n"));

    /// <summary>Every way; the first, whose callers block threads of their own, is the baseline.</summary>
    internal static async Task<IReadOnlyList<Load>> MeasureAsync(string kind, int atOnce, int rounds)
    {
        int each = (kind == Reads ? 16_384 : 8192) / Math.Max(atOnce, 32);
        if (kind == Flushes)
        {
            return await Loads.MeasureAsync(FlushWays(), atOnce, rounds, (count, _) => count < each, isProbed: true);
        }

        using TemporaryFolder folder = new();
        PageCache.TouchMemory(folder);
        IntegerFile file = IntegerFile.Make(folder, FileLength);
        return await Loads.MeasureAsync(
        [
            ColdReads("a thread each", true, file, static (handle, buffer, offset) =>
            {
                Check(offset, buffer.AsSpan(0, RandomAccess.Read(handle, buffer, offset)));
                return default;
            }),
            ColdReads("RandomAccess.ReadAsync", false, file, static async (handle, buffer, offset)
                => Check(offset, buffer.AsSpan(0, await RandomAccess.ReadAsync(handle, buffer, offset)))),
            ColdReads("FilePipeReader", false, file, static async (handle, _, offset) =>
            {
                FilePipeReader reader = FilePipeReader.Create(
                    handle, new() { Offset = offset, Length = PieceSize, BufferSize = PieceSize, LeaveOpen = true });
                ReadResult result = await reader.ReadAtLeastAsync(PieceSize);
                Check(offset, result.Buffer.FirstSpan);
                await reader.CompleteAsync();
            }),
        ], atOnce, rounds, (count, _) => count < each, isProbed: true);
    }

    private static IReadOnlyList<LoadWay> FlushWays() =>
    [
        FileEach<FileStream>("a thread each", true, static path => new(path, FileMode.Create, FileAccess.Write, FileShare.Read, 0),
            static stream =>
            {
                stream.Write(s_record);
                stream.Flush(flushToDisk: true);
                return default;
            }),

        // There is no asynchronous way to the device.
        FileEach<FileStream>("FileStream, Flush(true)", false,
            static path => new(path, FileMode.Create, FileAccess.Write, FileShare.Read, 4096, FileOptions.Asynchronous),
            static async stream =>
            {
                await stream.WriteAsync(s_record);
                await stream.FlushAsync();
                stream.Flush(flushToDisk: true);
            }),
        FileEach<FilePipeWriter>("FilePipeWriter", false,
            static path => FilePipeWriter.Create(path, new() { FlushGuarantee = FlushGuarantee.Durable }),
            static async writer => await writer.WriteAsync(s_record)),
    ];

    // A piece begins and ends with the integers that stand there.
    private static void Check(long offset, ReadOnlySpan<byte> piece)
    {
        if (piece.Length != PieceSize || BitConverter.ToInt64(piece) != offset / sizeof(long)
            || BitConverter.ToInt64(piece[^sizeof(long)..]) != ((offset + PieceSize) / sizeof(long)) - 1)
        {
            throw new InvalidDataException($"Not the bytes at offset {offset}.");
        }
    }

    /// <summary>Microseconds from a byte in one of many idle FIFOs to its reader's continuation.</summary>
    internal static async Task<Spread> WakeFifosAsync(int count)
    {
        using TemporaryFolder folder = new();
        FileStream[] writeEnds = new FileStream[count];
        FilePipeReader[] readers = new FilePipeReader[count];
        Task<ReadResult>[] reads = new Task<ReadResult>[count];
        for (int i = 0; i < count; i++)
        {
            string path = folder.PathOf($"fifo-{i}");
            if (Libc.MakeFifo(path, 0b110_000_000) != 0)
            {
                throw new IOException("The system makes no FIFO.");
            }

            // Open for both, so that open(2) does not wait for the other side.
            writeEnds[i] = new FileStream(
                File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite), FileAccess.Write, bufferSize: 0);
            readers[i] = FilePipeReader.Create(path);
            reads[i] = readers[i].ReadAsync().AsTask();
        }

        List<double> microseconds = new(WakeUps);
        for (int i = 0; i < WakeUps; i++)
        {
            int next = i * 7919 % count;
            long begin = Stopwatch.GetTimestamp();
            writeEnds[next].WriteByte(1);
            ReadResult result = await reads[next];
            microseconds.Add(Stopwatch.GetElapsedTime(begin).TotalMicroseconds);
            readers[next].AdvanceTo(result.Buffer.End);
            reads[next] = readers[next].ReadAsync().AsTask();
        }

        for (int i = 0; i < count; i++)
        {
            readers[i].CancelPendingRead();
            await reads[i];
            await readers[i].CompleteAsync();
            await writeEnds[i].DisposeAsync();
        }

        return Spread.Of(microseconds);
    }

    /// <summary>Each caller reads pieces at places of its own, the same in every run, through a handle of its own.</summary>
    private static LoadWay ColdReads(string name, bool blocks, IntegerFile file, Func<SafeFileHandle, byte[], long, ValueTask> readAsync)
        => new(name, Reads, blocks, (_, count) =>
        {
            (SafeFileHandle Handle, byte[] Buffer, Random Places)[] callers = [.. Enumerable.Range(0, count).Select(caller => (
                File.OpenHandle(file.Path, FileMode.Open, FileAccess.Read, FileShare.Read, FileOptions.RandomAccess),
                new byte[PieceSize], new Random(caller)))];
            return new(new OpenLoad(
                caller =>
                {
                    (SafeFileHandle handle, byte[] buffer, Random places) = callers[caller];
                    return readAsync(handle, buffer, places.NextInt64(file.Length / PieceSize) * PieceSize);
                },
                () =>
                {
                    Array.ForEach(callers, static caller => caller.Handle.Dispose());
                    return default;
                })
            {
                BeginRoundAsync = () =>
                {
                    PageCache.Evict(file.Path);
                    return default;
                },
            });
        });

    /// <summary>Each caller flushes to a file of its own, which is made anew in each round.</summary>
    private static LoadWay FileEach<TFile>(string name, bool blocks, Func<string, TFile> open, Func<TFile, ValueTask> flushAsync)
        where TFile : IAsyncDisposable
        => new(name, Flushes, blocks, (path, count) =>
        {
            TFile[] files = new TFile[count];
            int[] flushes = new int[count];
            return new(new OpenLoad(
                caller =>
                {
                    flushes[caller]++;
                    return flushAsync(files[caller]);
                },
                static () => default)
            {
                BeginRoundAsync = () =>
                {
                    Array.Clear(flushes);
                    for (int caller = 0; caller < count; caller++)
                    {
                        files[caller] = open($"{path}-{caller}");
                    }

                    return default;
                },
                EndRoundAsync = async () =>
                {
                    for (int caller = 0; caller < count; caller++)
                    {
                        await files[caller].DisposeAsync();
                        _ = new FileInfo($"{path}-{caller}").Length == (long)flushes[caller] * FlushSize ? 0
                            : throw new InvalidDataException("A file has not got all that was flushed.");
                    }
                },
            });
        });
}
