using System.IO.Compression;
using System.Runtime.InteropServices;
using DotNext.IO;
using Nerdbank.Streams;

namespace FilePipelines.Benchmarks;

/// <summary>One point of a write grid: what is written where, in pieces of which size.</summary>
/// <param name="Length">Bytes in all, a multiple of <paramref name="FlushSize"/>.</param>
/// <param name="FlushSize">
/// Bytes of one write, or between two flushes; a power of two up to the block of 1 MiB that is written again and again.
/// </param>
internal sealed record WritePoint(
    string Path, long Length, int FlushSize, bool Preallocate = false, FileOptions Options = FileOptions.None)
{
    private const int BlockSize = 1024 * 1024;
    private static readonly byte[] s_block = MakeBlock();

    internal long PreallocationSize => Preallocate ? Length : 0;

    /// <summary>The piece that goes to <paramref name="offset"/>.</summary>
    internal ReadOnlyMemory<byte> PieceAt(long offset) => s_block.AsMemory((int)(offset % BlockSize), FlushSize);

    internal SafeFileHandle OpenHandle()
        => File.OpenHandle(Path, FileMode.Create, FileAccess.Write, FileShare.Read, Options, PreallocationSize);

    internal FileStream OpenStream(int streamBuffer = 0, FileMode mode = FileMode.Create) => new(Path, new FileStreamOptions
    {
        Mode = mode,
        Access = FileAccess.Write,
        Share = FileShare.Read,
        BufferSize = streamBuffer,
        PreallocationSize = PreallocationSize,
        Options = Options,
    });

    /// <summary>Checks the length that the closed file has. Part of every measured method.</summary>
    internal long Finish()
        => new FileInfo(Path).Length == Length ? Length : throw new InvalidDataException($"The file does not have {Length} bytes.");

    /// <summary>Checks every byte of the file. Not part of what is measured.</summary>
    internal void Verify()
    {
        using FileStream stream = new(Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0);
        byte[] buffer = new byte[BlockSize];
        for (long offset = 0; offset < Length;)
        {
            int length = stream.ReadAtLeast(buffer, BlockSize, throwOnEndOfStream: false);
            if (length == 0 || !buffer.AsSpan(0, length).SequenceEqual(s_block.AsSpan(0, length)))
            {
                throw new InvalidDataException($"The file differs from what was written, in the MiB at offset {offset}.");
            }

            offset += length;
        }
    }

    private static byte[] MakeBlock()
    {
        byte[] block = new byte[BlockSize];
        Span<long> integers = MemoryMarshal.Cast<byte, long>(block.AsSpan());
        for (int i = 0; i < integers.Length; i++)
        {
            integers[i] = i;
        }

        return block;
    }
}

/// <summary>Every way to write a file from making it to closing it; the first of a list is its baseline.</summary>
internal static class WriteWays
{
    private const int DefaultStreamBuffer = 4096;

    /// <summary>The baseline has the 4 KiB buffer that a FileStream has by default.</summary>
    internal static Way<WritePoint> FileStreamSync { get; } = StreamSync("FileStreamSync", DefaultStreamBuffer);

    // FileMode.Create truncates even the file that it has just made, and ext4 begins to write what was truncated when it is closed.
    internal static Way<WritePoint> FileStreamSyncNew { get; } = StreamSync(
        "FileStreamSync, CreateNew", DefaultStreamBuffer, mode: FileMode.CreateNew);

    internal static Way<WritePoint> FileStreamSyncUnbuffered { get; } = StreamSync("FileStreamSync, unbuffered", 0);
    internal static Way<WritePoint> FileStreamAsync { get; } = StreamAsync("FileStreamAsync", DefaultStreamBuffer);
    internal static Way<WritePoint> FileStreamAsyncUnbuffered { get; } = StreamAsync("FileStreamAsync, unbuffered", 0);

    /// <summary>The handle itself, one call a piece.</summary>
    internal static Way<WritePoint> RandomAccessSync { get; } = Pieces(
        "RandomAccess.Write", static point => point.OpenHandle(), static (handle, piece, offset) =>
        {
            RandomAccess.Write(handle, piece.Span, offset);
            return default;
        });

    internal static Way<WritePoint> RandomAccessAsync { get; } = Pieces(
        "RandomAccess.WriteAsync", static point => point.OpenHandle(),
        static (handle, piece, offset) => RandomAccess.WriteAsync(handle, piece, offset));

    /// <summary>The limit of one call a piece: pwrite(2), with nothing of .NET between. Unix only.</summary>
    internal static Way<WritePoint> SystemCall { get; } = Pieces(
        "pwrite(2)", static point => point.OpenHandle(), static (handle, piece, offset) =>
        {
            Libc.PWriteAll(handle, piece.Span, offset);
            return default;
        });

    /// <summary>What .NET offers, without a second buffer in the stream, which every flush would empty anyway.</summary>
    internal static Way<WritePoint> PipeWriterCreate { get; } = Pipe(
        "PipeWriter.Create", static point => PipeWriter.Create(point.OpenStream()));

    internal static Way<WritePoint> WriteBehind { get; } = Own("FilePipeWriter", FlushGuarantee.WriteBehind);
    internal static Way<WritePoint> WriteBehindNew { get; } = Own(
        "FilePipeWriter, CreateNew", FlushGuarantee.WriteBehind, FileMode.CreateNew);

    internal static Way<WritePoint> Written { get; } = Own("FilePipeWriter, written", FlushGuarantee.Written);
    internal static Way<WritePoint> Durable { get; } = Own("FilePipeWriter, durable", FlushGuarantee.Durable);

    /// <summary>What a durable write is in .NET: each piece written without a buffer in between, and waiting for the device.</summary>
    internal static Way<WritePoint> FileStreamDurable { get; } = StreamSync("FileStream, flush to disk", 0, isDurable: true);

    /// <summary>DotNext.IO: FileWriter, with a buffer of one piece (at least its own least) and no flush between.</summary>
    internal static Way<WritePoint> DotNext { get; } = new("DotNext FileWriter", static async point =>
    {
        using (SafeFileHandle handle = point.OpenHandle())
        {
            using FileWriter writer = new(handle) { MaxBufferSize = Math.Max(point.FlushSize, 4096) };
            for (long offset = 0; offset < point.Length; offset += point.FlushSize)
            {
                await writer.WriteAsync(point.PieceAt(offset));
            }

            await writer.WriteAsync();
        }

        return point.Finish();
    });

    internal static Way<WritePoint> UsePipeWriter { get; } = new("Nerdbank UsePipeWriter", static async point =>
    {
        // Neither a flush nor completing this writer waits for the stream to have the bytes: the end of the reader behind it does.
        TaskCompletionSource<Exception?> written = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using (FileStream stream = point.OpenStream())
        {
            PipeWriter writer = stream.UsePipeWriter();
#pragma warning disable CS0618 // Not every PipeWriter calls back; that of a Pipe, which this is, does, and nothing else tells.
            writer.OnReaderCompleted(static (exception, state) => ((TaskCompletionSource<Exception?>)state!).SetResult(exception), written);
#pragma warning restore CS0618
            await WriteAllAsync(writer, point);
            if (await written.Task is { } exception)
            {
                throw exception;
            }
        }

        return point.Finish();
    });

    internal static IReadOnlyList<Way<WritePoint>> All { get; } =
    [
        FileStreamSync, FileStreamSyncNew, FileStreamAsync, PipeWriterCreate, RandomAccessSync, RandomAccessAsync, WriteBehind,
        WriteBehindNew, Written, .. OperatingSystem.IsWindows() ? (Way<WritePoint>[])[] : [SystemCall], UsePipeWriter,
    ];

    private static Way<WritePoint> StreamSync(
        string name, int streamBuffer, FileMode mode = FileMode.Create, bool isDurable = false) => Pieces(
            name, point => point.OpenStream(streamBuffer, mode), (stream, piece, _) =>
            {
                stream.Write(piece.Span);
                if (isDurable)
                {
                    stream.Flush(flushToDisk: true);
                }

                return default;
            });

    private static Way<WritePoint> StreamAsync(string name, int streamBuffer)
        => Pieces(name, point => point.OpenStream(streamBuffer), static (stream, piece, _) => stream.WriteAsync(piece));

    // One call a piece.
    private static Way<WritePoint> Pieces<TFile>(
        string name, Func<WritePoint, TFile> open, Func<TFile, ReadOnlyMemory<byte>, long, ValueTask> writeAsync)
        where TFile : IDisposable
        => new(name, async point =>
        {
            using (TFile file = open(point))
            {
                for (long offset = 0; offset < point.Length; offset += point.FlushSize)
                {
                    await writeAsync(file, point.PieceAt(offset), offset);
                }
            }

            return point.Finish();
        });

    private static Way<WritePoint> Pipe(string name, Func<WritePoint, PipeWriter> create) => new(name, async point =>
    {
        await WriteAllAsync(create(point), point);
        return point.Finish();
    });

    private static Way<WritePoint> Own(string name, FlushGuarantee guarantee, FileMode mode = FileMode.Create)
        => Pipe(name, point => FilePipeWriter.Create(point.Path, new()
        {
            Mode = mode,
            FlushGuarantee = guarantee,
            PreallocationSize = point.PreallocationSize,
            FileOptions = point.Options,
        }));

    private static async ValueTask WriteAllAsync(PipeWriter writer, WritePoint point)
    {
        for (long offset = 0; offset < point.Length; offset += point.FlushSize)
        {
            await writer.WriteAsync(point.PieceAt(offset));
        }

        await writer.CompleteAsync();
    }
}

/// <summary>The grids of writing.</summary>
internal static class Writing
{
    internal const int DurablePieces = 128;
    private const int FlushCount = 4096;
    private const long MiB = 1024 * 1024;
    private const string FileName = "written.bin";
    private static readonly int[] s_writtenSizes = [100, 512, 4096, 16384];
    private static readonly int[] s_durableSizes = [512, 4096, 65536];

    private static readonly Way<WritePoint>[] s_forSettings =
    [
        WriteWays.FileStreamSync, WriteWays.FileStreamSyncNew, WriteWays.RandomAccessSync, WriteWays.PipeWriterCreate, WriteWays.DotNext,
        WriteWays.WriteBehind,
    ];

    internal static IReadOnlyList<int> SizesOf(bool isPreallocated)
        => isPreallocated ? [512, 4096, 65536, 262144] : [512, 2048, 4096, 16384, 65536, 262144];

    /// <summary>A new file, written in pieces, growing and preallocated.</summary>
    internal static IReadOnlyList<Grid> Pieces(Scale scale) => [Pieces(scale, isPreallocated: false, 40), Pieces(scale, true, 25)];

    /// <summary>Small flushes, each of which is a system call.</summary>
    internal static Grid Flushes(Scale scale) => new(
        "flush", "One flush that the system has", "bytes of a flush", 10,
        new PairedMeasurement(scale.MinRounds, 21, TimeSpan.FromMilliseconds(1)),
        "**Written**: one system call, and what a pipe costs around it.",
        folder => [.. s_writtenSizes.Select(size => ColumnOf(
            SizeText.Of(size),
            [
                WriteWays.PipeWriterCreate, WriteWays.FileStreamSyncUnbuffered, WriteWays.RandomAccessSync, WriteWays.Written,
                WriteWays.WriteBehind,
            ],
            new WritePoint(folder.PathOf(FileName), (long)FlushCount * size, size)))])
    {
        Operations = FlushCount,
    };

    /// <summary>Each way with the size of piece that suits it best, and each way by default.</summary>
    internal static IReadOnlyList<Grid> BestSettings(Scale scale)
    {
        string length = SizeText.Of(scale.WrittenBytes);
        return
        [
            new("best-write", $"Writing {length}, each way at its best setting", "length", 20,
                new PairedMeasurement(scale.MinRounds, 9, TimeSpan.FromMilliseconds(1)), string.Empty,
                folder => [new Column(length, BestCandidates(folder, scale, scale.WrittenBytes))])
            {
                HasManySettings = true,
                MakeWarmUp = folder => BestCandidates(folder, scale, 2 * MiB),
            },

            // RandomAccess.Write has no setting but the size of the piece.
            new("default-write", $"Writing {length} in pieces of 4 KiB, each way with its default setting", "length", 8,
                new PairedMeasurement(scale.MinRounds, 9, TimeSpan.FromMilliseconds(1)), string.Empty,
                folder => [new Column(length, [.. s_forSettings.Select(way => Fresh(way).At(
                    new WritePoint(folder.PathOf(FileName), scale.WrittenBytes, 4096), Reading.NoSetting))])])
            {
                HasManySettings = true,
                IsWarm = true,
            },
        ];
    }

    /// <summary>One after the other, each on the device.</summary>
    internal static Grid Durable(Scale scale) => new(
        "durable",
        $"{DurablePieces} durable flushes, each on the device",
        "bytes between two flushes",
        10,
        new PairedMeasurement(scale.MinRounds, 21, TimeSpan.FromMilliseconds(1)),
        "**Durable flushes**: each sync is handed to another thread; `Flush(true)` blocks its own.",
        folder => [.. s_durableSizes.Select(size => ColumnOf(
            SizeText.Of(size),
            [WriteWays.FileStreamDurable, WriteWays.Durable],
            new WritePoint(folder.PathOf(FileName), DurablePieces * (long)size, size)))]);

    /// <summary>A GZipStream over each stream that a file may be written through.</summary>
    internal static Grid Compress(Scale scale) => new(
        "compress", $"{SizeText.Of(scale.CompressedBytes)} of text through a GZipStream into a file; CPU time is in figures.csv", "length",
        6, new PairedMeasurement(scale.MinRounds, 15, TimeSpan.FromMilliseconds(1)),
        "**Compressing**: the compressor takes nearly all of the time.",
        folder =>
        {
            byte[] content = TextFile.MakeNumbers<LineParser>(folder, scale.CompressedBytes, lineLength: 100).Content.ToArray();
            string path = folder.PathOf("numbers.gz");
            return
            [
                new Column(SizeText.Of(scale.CompressedBytes),
                [
                    new("FileStream, gzip", () => CompressAsync(content, path, new FileStream(path, FileMode.CreateNew)), Delete),
                    new("FilePipeWriter.AsStream, gzip", () => CompressAsync(
                        content, path, FilePipeWriter.Create(path, new() { Mode = FileMode.CreateNew }).AsStream()), Delete),
                ]),
            ];

            void Delete() => File.Delete(path);
        })
    {
        IsWarm = true,
    };

    private static Grid Pieces(Scale scale, bool isPreallocated, double weight) => new(
        isPreallocated ? "write-preallocated" : "write",
        $"Writing {SizeText.Of(scale.GridBytes)}{(isPreallocated ? ", preallocated" : string.Empty)}",
        "bytes between two flushes",
        weight,
        new PairedMeasurement(scale.MinRounds, 21, TimeSpan.FromMilliseconds(1)),
        "**Writing**: from 64 KiB a flush on, bytes are copied once more, into segments; `written` makes a system call a flush, where a "
        + "`FileStream` fills its buffer of 4 KiB.",
        folder => [.. SizesOf(isPreallocated).Select(size => ColumnOf(
            SizeText.Of(size), WriteWays.All, new WritePoint(folder.PathOf(FileName), scale.GridBytes, size, isPreallocated)))])
    {
        MakeWarmUp = isPreallocated ? null
            : folder => ColumnOf("1 MiB", WriteWays.All, new WritePoint(folder.PathOf(FileName), MiB, 4096)).Candidates,
        IsWarm = isPreallocated,
    };

    private static Column ColumnOf(string name, IEnumerable<Way<WritePoint>> ways, WritePoint point)
        => Column.Of(name, ways.Select(Fresh), point);

    // The file does not exist before it is written.
    private static Way<WritePoint> Fresh(Way<WritePoint> way) => way with { Prepare = static point => File.Delete(point.Path) };

    private static IReadOnlyList<Candidate> BestCandidates(TemporaryFolder folder, Scale scale, long length) =>
    [
        .. s_forSettings.SelectMany(way => scale.Points(Reading.Settings, 1, 2).Select(
            size => Fresh(way).At(new WritePoint(folder.PathOf(FileName), length, size), SizeText.Of(size)))),
    ];

    private static async ValueTask<long> CompressAsync(byte[] content, string path, Stream stream)
    {
        const int Piece = 64 * 1024;
        await using (GZipStream compressing = new(stream, CompressionLevel.Fastest))
        {
            for (int offset = 0; offset < content.Length; offset += Piece)
            {
                await compressing.WriteAsync(content.AsMemory(offset, Math.Min(Piece, content.Length - offset)));
            }
        }

        return new FileInfo(path).Length;
    }
}
