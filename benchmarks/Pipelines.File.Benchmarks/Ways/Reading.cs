using System.Buffers;
using System.Buffers.Binary;
using System.IO.MemoryMappedFiles;
using System.Numerics;
using System.Runtime.InteropServices;
using DotNext.IO;
using Nerdbank.Streams;
using Pipelines.Sockets.Unofficial;

namespace FilePipelines.Benchmarks;

/// <summary>One point of a read grid.</summary>
/// <param name="BufferSize">Bytes of one buffer, or of one segment.</param>
internal sealed record ReadPoint(IntegerFile File, int BufferSize, FileOptions Options = FileOptions.SequentialScan)
{
    internal SafeFileHandle OpenHandle()
        => System.IO.File.OpenHandle(File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, Options);

    internal FileStream OpenStream(int streamBuffer = 0)
        => new(File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, streamBuffer, Options);
}

/// <summary>What is done with every buffer that a way to read yields. A struct, so that each way is compiled for it.</summary>
internal interface IBufferWork
{
    void Take(ReadOnlySpan<byte> buffer);

    /// <summary>The answer.</summary>
    /// <exception cref="InvalidDataException">It is not what <paramref name="file"/> holds.</exception>
    long Finish(IntegerFile file);
}

/// <summary>
/// The work of the 2019 grid: the last eight bytes of every buffer. Each has to be the integer that stands there in the file.
/// </summary>
internal struct LastEightBytes : IBufferWork
{
    private long _bytes;
    private long _wrong;

    public void Take(ReadOnlySpan<byte> buffer)
    {
        _bytes += buffer.Length;
        if (_bytes % sizeof(long) == 0 && buffer.Length >= sizeof(long))
        {
            _wrong |= BinaryPrimitives.ReadInt64LittleEndian(buffer[^sizeof(long)..]) ^ ((_bytes / sizeof(long)) - 1);
        }
    }

    public readonly long Finish(IntegerFile file)
        => _bytes == file.Length && _wrong == 0 ? _bytes : throw new InvalidDataException(
            $"{_bytes} bytes instead of {file.Length}, or a buffer that does not end where the file has its bytes.");
}

/// <summary>Touches every byte: the sum of the file's integers, a vector at a time.</summary>
internal struct Int64Sum : IBufferWork
{
    private long _sum;

    public void Take(ReadOnlySpan<byte> buffer)
    {
        ReadOnlySpan<long> integers = MemoryMarshal.Cast<byte, long>(buffer);
        if (integers.Length * sizeof(long) != buffer.Length)
        {
            throw new InvalidDataException(
                "A buffer that ends inside an integer: no way to read here gives one for a file of whole pages.");
        }

        ReadOnlySpan<Vector<long>> vectors = MemoryMarshal.Cast<long, Vector<long>>(integers);
        Vector<long> sums = Vector<long>.Zero;
        foreach (Vector<long> vector in vectors)
        {
            sums += vector;
        }

        _sum += Vector.Sum(sums);
        foreach (long integer in integers[(vectors.Length * Vector<long>.Count)..])
        {
            _sum += integer;
        }
    }

    public readonly long Finish(IntegerFile file)
        => _sum == file.Sum ? _sum : throw new InvalidDataException($"The sum is {_sum} instead of {file.Sum}.");
}

/// <summary>
/// Every way to read a file from opening it to closing it, with some work on every buffer. The first of a list is its baseline.
/// </summary>
internal static class ReadWays<TWork>
    where TWork : struct, IBufferWork
{
    private const int DefaultStreamBuffer = 4096;
    private const int PageSize = 4096;
    private const int KernelCall = 256 * 1024;
    private const int ReadAhead = 1024 * 1024;

    /// <summary>The baseline, as it was in 2019: a buffer of the same size in the stream, and a new array in the caller.</summary>
    internal static Way<ReadPoint> FileStreamSync { get; } = StreamSync("FileStreamSync", null);
    internal static Way<ReadPoint> FileStreamAsync { get; } = StreamAsync("FileStreamAsync", null);

    // The .NET 6 article's four: the stream's own buffer is the default one or none, whatever the caller's.
    internal static Way<ReadPoint> FileStreamSyncBuffered { get; } = StreamSync("FileStreamSync, 4 KiB in the stream", DefaultStreamBuffer);
    internal static Way<ReadPoint> FileStreamSyncUnbuffered { get; } = StreamSync("FileStreamSync, unbuffered", 0);
    internal static Way<ReadPoint> FileStreamAsyncBuffered { get; } = StreamAsync(
        "FileStreamAsync, 4 KiB in the stream", DefaultStreamBuffer);

    internal static Way<ReadPoint> FileStreamAsyncUnbuffered { get; } = StreamAsync("FileStreamAsync, unbuffered", 0);

    /// <summary>The baseline made as good as it gets: no buffer in the stream, and the caller's array out of the shared pool.</summary>
    internal static Way<ReadPoint> FileStreamSyncRented { get; } = new("FileStreamSync, rented buffer", static point =>
    {
        using FileStream stream = point.OpenStream();
        return new(Rented(point, (buffer, _) => stream.Read(buffer)));
    });

    /// <summary>The handle itself, a rented buffer, one call a buffer.</summary>
    internal static Way<ReadPoint> RandomAccessSync { get; } = new("RandomAccess.Read", static point =>
    {
        using SafeFileHandle handle = point.OpenHandle();
        return new(Rented(point, (buffer, offset) => RandomAccess.Read(handle, buffer, offset)));
    });

    internal static Way<ReadPoint> RandomAccessAsync { get; } = new("RandomAccess.ReadAsync", static async point =>
    {
        using SafeFileHandle handle = point.OpenHandle();
        byte[] rented = ArrayPool<byte>.Shared.Rent(point.BufferSize);
        long answer = await IntoAsync(rented, point, (buffer, offset) => RandomAccess.ReadAsync(handle, buffer, offset));
        ArrayPool<byte>.Shared.Return(rented);
        return answer;
    });

    /// <summary>The limit of one call a buffer: pread(2) into one rented buffer, with nothing of .NET between. Unix only.</summary>
    internal static Way<ReadPoint> SystemCall { get; } = new("pread(2)", static point =>
    {
        using SafeFileHandle handle = point.OpenHandle();
        return new(Rented(point, (buffer, offset) => Libc.PRead(handle, buffer, offset)));
    });

    /// <summary>What .NET offers: PipeReader.Create over a FileStream, without a second buffer in the stream.</summary>
    internal static Way<ReadPoint> PipeReaderCreate { get; } = Pipe(
        "PipeReader.Create",
        static point => PipeReader.Create(point.OpenStream(), new StreamPipeReaderOptions(bufferSize: point.BufferSize)));

    /// <summary>What programs write by hand (PipelineAdapter in 2019): a loop reads a FileStream into a Pipe.</summary>
    internal static Way<ReadPoint> FileStreamToPipe { get; } = new("FileStream to Pipe", static async point =>
    {
        Pipe pipe = new(RoomForTwo(point));
        Task filling = FillAsync(pipe.Writer, point);
        long answer = await ReadToEndAsync(pipe.Reader, point);
        await filling;
        return answer;
    });

    /// <summary>
    /// The file mapped into memory, looked at in pieces of the buffer size: nothing is copied, and the system makes each page accessible
    /// when it is touched first. Where every byte is touched; else it would leave most of the file alone.
    /// </summary>
    internal static Way<ReadPoint> MemoryMapped { get; } = new("MemoryMappedFile", static point => new(Mapped(point)));

    /// <summary>
    /// What no way can be faster than, whatever the size of the buffers: RandomAccess.Read of 256 KiB into memory aligned to a page, looked
    /// at in pieces of the point's size.
    /// </summary>
    internal static Way<ReadPoint> KernelCopy { get; } = new(Reading.KernelCopyName, static point =>
    {
        using SafeFileHandle handle = point.OpenHandle();
        return new(IntoAligned(point, KernelCall, (memory, offset) => RandomAccess.Read(handle, memory, offset)));
    });

    /// <summary>This library, with segments of the buffer size.</summary>
    internal static Way<ReadPoint> Own { get; } = OwnWith("FilePipeReader", readAhead: 0);
    internal static Way<ReadPoint> OwnAhead { get; } = OwnWith("FilePipeReader, read-ahead", ReadAhead);

    /// <summary>With no option set, as somebody writes it who has read no page on tuning.</summary>
    internal static Way<ReadPoint> OwnDefault { get; } = Pipe("FilePipeReader", static point => FilePipeReader.Create(point.File.Path));
    internal static Way<ReadPoint> PipeReaderDefault { get; } = Pipe(
        "PipeReader.Create", static point => PipeReader.Create(File.OpenRead(point.File.Path)));

    /// <summary>DotNext.IO: FileReader, a buffer over the handle, with a buffer of that size.</summary>
    internal static Way<ReadPoint> DotNext { get; } = new("DotNext FileReader", static async point =>
    {
        TWork work = default;
        using SafeFileHandle handle = point.OpenHandle();
        using FileReader reader = new(handle) { MaxBufferSize = point.BufferSize };
        while (await reader.ReadAsync())
        {
            work.Take(reader.Buffer.Span);
            reader.Consume(reader.Buffer.Length);
        }

        return work.Finish(point.File);
    });

    /// <summary>PipelineAdapter3 of 2019.</summary>
    internal static Way<ReadPoint> UsePipeReader { get; } = OverStream(
        "Nerdbank UsePipeReader", static (stream, point) => stream.UsePipeReader(point.BufferSize));

#pragma warning disable CS0618 // Its own package says by now: use PipeReader.Create instead. The report of 2019 had it.
    internal static Way<ReadPoint> UseStrictPipeReader { get; } = OverStream(
        "Nerdbank UseStrictPipeReader", static (stream, point) => stream.UseStrictPipeReader(point.BufferSize));
#pragma warning restore CS0618

    /// <summary>PipelineAdapter2 of 2019.</summary>
    internal static Way<ReadPoint> GetReader { get; } = OverStream(
        "StreamConnection.GetReader", static (stream, point) => StreamConnection.GetReader(stream, RoomForTwo(point)));

    internal static IReadOnlyList<Way<ReadPoint>> All { get; } =
    [
        FileStreamSync, FileStreamSyncRented, FileStreamAsync, PipeReaderCreate, FileStreamToPipe, RandomAccessSync, RandomAccessAsync, Own,
        OwnAhead, KernelCopy, .. OperatingSystem.IsWindows() ? (Way<ReadPoint>[])[] : [SystemCall], UsePipeReader, UseStrictPipeReader,
        GetReader,
    ];

    private static Way<ReadPoint> StreamSync(string name, int? streamBuffer) => new(name, point =>
    {
        using FileStream stream = point.OpenStream(streamBuffer ?? point.BufferSize);
        return new(Into(new byte[point.BufferSize], point, (buffer, _) => stream.Read(buffer)));
    });

    private static Way<ReadPoint> StreamAsync(string name, int? streamBuffer) => new(name, async point =>
    {
        using FileStream stream = point.OpenStream(streamBuffer ?? point.BufferSize);
        return await IntoAsync(new byte[point.BufferSize], point, (buffer, _) => stream.ReadAsync(buffer));
    });

    private static Way<ReadPoint> Pipe(string name, Func<ReadPoint, PipeReader> create)
        => new(name, point => ReadToEndAsync(create(point), point));

    private static Way<ReadPoint> OwnWith(string name, long readAhead) => Pipe(name, point => FilePipeReader.Create(
        point.File.Path, new() { BufferSize = point.BufferSize, FileOptions = point.Options, PauseReadAheadThreshold = readAhead }));

    // Over a FileStream without a buffer of its own, which not every one of them closes.
    private static Way<ReadPoint> OverStream(string name, Func<FileStream, ReadPoint, PipeReader> create) => new(name, async point =>
    {
        await using FileStream stream = point.OpenStream();
        return await ReadToEndAsync(create(stream, point), point);
    });

    // Room for two buffers, so that both sides can work.
    private static PipeOptions RoomForTwo(ReadPoint point)
    {
        long pause = Math.Max(64 * 1024, 2L * point.BufferSize);
        return new(minimumSegmentSize: point.BufferSize, pauseWriterThreshold: pause, resumeWriterThreshold: pause / 2,
            useSynchronizationContext: false);
    }

    private delegate int ReadCall(Span<byte> buffer, long offset);

    private static long Into(byte[] buffer, ReadPoint point, ReadCall read)
    {
        TWork work = default;
        long offset = 0;
        for (int length; (length = read(buffer.AsSpan(0, point.BufferSize), offset)) > 0; offset += length)
        {
            work.Take(buffer.AsSpan(0, length));
        }

        return work.Finish(point.File);
    }

    private static long Rented(ReadPoint point, ReadCall read)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(point.BufferSize);
        long answer = Into(buffer, point, read);
        ArrayPool<byte>.Shared.Return(buffer);
        return answer;
    }

    private static async ValueTask<long> IntoAsync(byte[] buffer, ReadPoint point, Func<Memory<byte>, long, ValueTask<int>> readAsync)
    {
        TWork work = default;
        long offset = 0;
        for (int length; (length = await readAsync(buffer.AsMemory(0, point.BufferSize), offset)) > 0; offset += length)
        {
            work.Take(buffer.AsSpan(0, length));
        }

        return work.Finish(point.File);
    }

    private static async Task FillAsync(PipeWriter writer, ReadPoint point)
    {
        using FileStream stream = point.OpenStream();
        int length;
        while ((length = await stream.ReadAsync(writer.GetMemory(point.BufferSize))) > 0)
        {
            writer.Advance(length);
            await writer.FlushAsync();
        }

        await writer.CompleteAsync();
    }

    private static async ValueTask<long> ReadToEndAsync(PipeReader reader, ReadPoint point)
    {
        TWork work = default;
        while (true)
        {
            ReadResult result = await reader.ReadAsync();
            ReadOnlySequence<byte> buffer = result.Buffer;
            foreach (ReadOnlyMemory<byte> segment in buffer)
            {
                work.Take(segment.Span);
            }

            reader.AdvanceTo(buffer.End);
            if (result.IsCompleted)
            {
                break;
            }
        }

        await reader.CompleteAsync();
        return work.Finish(point.File);
    }

    private static unsafe long Mapped(ReadPoint point)
    {
        TWork work = default;
        using MemoryMappedFile mapped = MemoryMappedFile.CreateFromFile(
            point.File.Path, FileMode.Open, mapName: null, 0, MemoryMappedFileAccess.Read);
        using MemoryMappedViewAccessor view = mapped.CreateViewAccessor(0, 0, MemoryMappedFileAccess.Read);
        byte* start = null;
        view.SafeMemoryMappedViewHandle.AcquirePointer(ref start);
        try
        {
            for (long offset = 0; offset < point.File.Length; offset += point.BufferSize)
            {
                work.Take(new ReadOnlySpan<byte>(start + offset, (int)Math.Min(point.BufferSize, point.File.Length - offset)));
            }
        }
        finally
        {
            view.SafeMemoryMappedViewHandle.ReleasePointer();
        }

        return work.Finish(point.File);
    }

    private static unsafe long IntoAligned(ReadPoint point, int callSize, ReadCall read)
    {
        TWork work = default;
        byte* memory = (byte*)NativeMemory.AlignedAlloc((nuint)callSize, PageSize);
        long offset = 0;
        int length;
        while ((length = read(new Span<byte>(memory, callSize), offset)) > 0)
        {
            for (int start = 0; start < length; start += point.BufferSize)
            {
                work.Take(new ReadOnlySpan<byte>(memory + start, Math.Min(point.BufferSize, length - start)));
            }

            offset += length;
        }

        NativeMemory.AlignedFree(memory);
        return work.Finish(point.File);
    }
}

/// <summary>The grids of reading.</summary>
internal static class Reading
{
    internal const string KernelCopyName = "the kernel's copy";

    /// <summary>What somebody who sets nothing has.</summary>
    internal const string NoSetting = "by default";
    internal const int MappedBufferSize = 64 * 1024;
    private const long MiB = 1024 * 1024;
    private static readonly int[] s_coldSizes = [4096, 65536];

    /// <summary>Bytes of the buffers that each way is measured with to find its best setting.</summary>
    internal static IReadOnlyList<int> Settings { get; } = [16384, 65536, 262144, 1048576];

    // The grid of 2019 has FileOptions.Asynchronous, too, which changes nothing for the ways that win or lose here: ReadGrid has it.
    internal static IReadOnlyList<int> GridMebibytes { get; } = [4, 128];
    internal static IReadOnlyList<int> GridSizes { get; } = [2048, 4096, 16384, 65536, 262144];

    /// <summary>The grid of 2019, and the same with every byte touched.</summary>
    internal static IReadOnlyList<Grid> Of2019(Scale scale) =>
    [
        .. GridMebibytes.Select(mebibytes => Points(scale, $"read-{mebibytes}", string.Empty, mebibytes,
            ReadWays<LastEightBytes>.All, mebibytes == 4 ? 16 : 45)),
        Points(scale, "sum-4", ", every byte summed", 4, ReadWays<Int64Sum>.All, 12),
    ];

    /// <summary>Each way with the buffer that suits it best, and each way by default.</summary>
    internal static IReadOnlyList<Grid> BestSettings(Scale scale) =>
    [
        new("best-read-128", "Reading 128 MiB, each way at its best setting", "length", 20,
            new PairedMeasurement(scale.MinRounds, 15, scale.Sample), string.Empty,
            folder => [new Column("128 MiB", BestCandidates(IntegerFile.Make(folder, 128 * MiB), scale))])
        {
            HasManySettings = true,
            MakeWarmUp = folder => BestCandidates(IntegerFile.Make(folder, MiB), scale),
        },
        new("default-read", "Reading 128 MiB, each way with its default setting", "length", 8,
            new PairedMeasurement(scale.MinRounds, 15, scale.Sample), string.Empty,
            folder => [new Column("128 MiB", DefaultCandidates(IntegerFile.Make(folder, 128 * MiB)))])
        {
            HasManySettings = true,
            MakeWarmUp = folder => DefaultCandidates(IntegerFile.Make(folder, MiB)),
        },
    ];

    /// <summary>A mapped file against the ways that copy, for both ways in which the page cache may hold it.</summary>
    internal static Grid Mapping(Scale scale) => new(
        "mapping", $"Reading {SizeText.Of(scale.MappedBytes)}, every byte summed, buffers of {SizeText.Of(MappedBufferSize)}",
        "how the file was written", 8, new PairedMeasurement(scale.MinRounds, 31, scale.Sample),
        "**Mapping**: nothing is copied, and large folios cost few faults.",
        folder =>
        [
            MappingColumn("pieces of 1 MiB (large folios)", IntegerFile.Make(folder, scale.MappedBytes)),
            MappingColumn("pieces of 4 KiB (small folios)", IntegerFile.Make(folder, scale.MappedBytes, IntegerFile.SmallPiece)),
        ])
    {
        IsWarm = true,
    };

    /// <summary>A large file that the page cache does not hold. Linux.</summary>
    internal static Grid Cold(Scale scale) => new(
        "cold-sequential", $"Reading {SizeText.Of(scale.ColdBytes)} that the page cache does not hold", "buffer size", 16,
        new PairedMeasurement(scale.MinRounds, 15, TimeSpan.FromMilliseconds(1)),
        "**Cold**: the kernel reads ahead for every way, and the device decides.",
        folder =>
        {
            PageCache.TouchMemory(folder);
            IntegerFile file = IntegerFile.Make(folder, scale.ColdBytes);
            IEnumerable<Way<ReadPoint>> ways = new[]
            {
                ReadWays<Int64Sum>.FileStreamSync, ReadWays<Int64Sum>.FileStreamAsync, ReadWays<Int64Sum>.PipeReaderCreate,
                ReadWays<Int64Sum>.Own, ReadWays<Int64Sum>.OwnAhead,
            }.Select(way => way with { Prepare = static point => PageCache.Evict(point.File.Path) });
            return [.. s_coldSizes.Select(size => Column.Of(SizeText.Of(size), ways, new ReadPoint(file, size)))];
        })
    {
        IsWarm = true,
    };

    private static Column MappingColumn(string name, IntegerFile file) => Column.Of(
        name,
        [
            ReadWays<Int64Sum>.FileStreamSync, ReadWays<Int64Sum>.RandomAccessSync, ReadWays<Int64Sum>.PipeReaderCreate,
            ReadWays<Int64Sum>.Own, ReadWays<Int64Sum>.OwnAhead, ReadWays<Int64Sum>.MemoryMapped,
        ],
        new ReadPoint(file, MappedBufferSize));

    private static IReadOnlyList<Candidate> BestCandidates(IntegerFile file, Scale scale)
    {
        Way<ReadPoint>[] ways =
        [
            ReadWays<LastEightBytes>.FileStreamSync, ReadWays<LastEightBytes>.FileStreamSyncRented,
            ReadWays<LastEightBytes>.RandomAccessSync, ReadWays<LastEightBytes>.PipeReaderCreate,
            ReadWays<LastEightBytes>.FileStreamToPipe, ReadWays<LastEightBytes>.DotNext, ReadWays<LastEightBytes>.Own,
            ReadWays<LastEightBytes>.OwnAhead,
        ];
        return
        [
            .. ways.SelectMany(way => scale.Points(Settings, 1, 2).Select(
                size => way.At(new ReadPoint(file, size, FileOptions.None), SizeText.Of(size)))),
            ReadWays<LastEightBytes>.OwnDefault.At(new ReadPoint(file, 0, FileOptions.None), NoSetting),
        ];
    }

    private static IReadOnlyList<Candidate> DefaultCandidates(IntegerFile file) =>
    [
        .. new[]
        {
            ReadWays<LastEightBytes>.FileStreamSyncBuffered, ReadWays<LastEightBytes>.PipeReaderDefault, ReadWays<LastEightBytes>.DotNext,
            ReadWays<LastEightBytes>.OwnDefault,
        }.Select(way => way.At(new ReadPoint(file, 4096, FileOptions.None), NoSetting)),
    ];

    private static Grid Points(
        Scale scale, string key, string work, int mebibytes, IReadOnlyList<Way<ReadPoint>> ways, double weight)
        => new(
            key,
            $"Reading {mebibytes} MiB{work}, SequentialScan",
            "buffer size",
            weight,
            new PairedMeasurement(scale.MinRounds, 31, scale.Sample),
            "**Reading**: from 64 KiB on, the copy out of the page cache is nearly all, and read-ahead makes it on another core.",
            folder =>
            {
                IntegerFile file = IntegerFile.Make(folder, mebibytes * MiB);
                return [.. GridSizes.Select(size => Column.Of(SizeText.Of(size), ways, new ReadPoint(file, size)))];
            })
        {
            MakeWarmUp = key == "read-4"
                ? folder => Column.Of("4 KiB", ways, new ReadPoint(IntegerFile.Make(folder, 4 * MiB), 4096)).Candidates : null,
            IsWarm = key != "read-4",
        };
}
