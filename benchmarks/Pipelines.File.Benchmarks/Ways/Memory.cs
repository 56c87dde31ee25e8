using Microsoft.IO;

namespace FilePipelines.Benchmarks;

/// <summary>One point of a memory grid: content that is built of equal pieces, again and again.</summary>
internal sealed record MemoryPoint(int Size, int Writes, string Path = "")
{
    /// <summary>One piece.</summary>
    internal byte[] Piece { get; } = MakePiece(Size);

    /// <summary>Bytes of the whole content.</summary>
    internal long Length => (long)Size * Writes;

    /// <summary>Checks the content's length, and its last piece.</summary>
    internal long Check(byte[] content)
        => content.Length == Length && content.AsSpan(^Size..).SequenceEqual(Piece) ? Length
            : throw new InvalidDataException($"{content.Length} bytes instead of {Length}.");

    private static byte[] MakePiece(int size)
    {
        byte[] piece = new byte[size];
        new Random(1).NextBytes(piece);
        return size == sizeof(double) ? BitConverter.GetBytes(Memory.Value) : piece;
    }
}

/// <summary>Every way to build content in memory; the first of a list is its baseline.</summary>
internal static class Memory
{
    /// <summary>What every double is.</summary>
    internal const double Value = 1.0;
    private static readonly RecyclableMemoryStreamManager s_manager = new();

    /// <summary>Arrays written, and the content as an array.</summary>
    private static IReadOnlyList<Way<MemoryPoint>> Bytes { get; } =
    [
        Built("MemoryStream", static () => new MemoryStream(), Fill, static stream => stream.ToArray()),
        Built("RecyclableMemoryStream", s_manager.GetStream, Fill, static stream => stream.ToArray()),
        Built("PooledMemoryStream", static () => new PooledMemoryStream(), Fill, static stream => stream.ToArray()),
    ];

    /// <summary>Doubles written one by one, and the content as an array.</summary>
    private static IReadOnlyList<Way<MemoryPoint>> Doubles { get; } =
    [
        Built("MemoryStream with BinaryWriter", static () => new MemoryStream(), FillDoubles, static stream => stream.ToArray()),
        Built("RecyclableMemoryStream with BinaryWriter", s_manager.GetStream, FillDoubles, static stream => stream.ToArray()),
        Built("PooledMemoryStream with BinaryWriter", static () => new PooledMemoryStream(), FillDoubles,
            static stream => stream.ToArray()),
        Built("PooledMemoryStream", static () => new PooledMemoryStream(), static (stream, point) =>
        {
            for (int number = 0; number < point.Writes; number++)
            {
                stream.WriteDoubleLittleEndian(Value);
            }
        }, static stream => stream.ToArray()),
    ];

    /// <summary>Arrays written, and the content copied to a new file.</summary>
    private static IReadOnlyList<Way<MemoryPoint>> Files { get; } =
    [
        ToFile("MemoryStream to FileStream", static () => new MemoryStream()),
        ToFile("RecyclableMemoryStream to FileStream", s_manager.GetStream),
        ToFile("PooledMemoryStream to FileStream", static () => new PooledMemoryStream()),
        ToFile("PooledMemoryStream to FilePipeWriter", static () => new PooledMemoryStream(), isPipe: true),
    ];

    /// <summary>FastStream's benchmark builds ten streams a run, too.</summary>
    internal const int StreamsPerRun = 10;

    // FastStream's grids: bytes of each array, or of a double, and how many.
    internal static IReadOnlyList<(int Size, int Writes)> Arrays { get; } =
        [(100, 10), (100, 100), (100, 1000), (100_000, 10), (100_000, 100), (100_000, 1000)];

    internal static IReadOnlyList<(int Size, int Writes)> DoubleCounts { get; } =
        [(sizeof(double), 10), (sizeof(double), 100), (sizeof(double), 1000)];

    private const string Reason =
        "**Memory**: `ToArray` makes a large object of 85,000 bytes, whose pages the collector gives back; `MemoryStream` keeps some.";

    internal static IReadOnlyList<Grid> Grids(Scale scale) =>
    [
        Built(scale, "memory-bytes", "arrays", "writes × bytes", scale.Points(Arrays, 1, 4), Bytes, 45),
        Built(scale, "memory-doubles", "doubles", "doubles", scale.Points(DoubleCounts, 1), Doubles, 20),
        new(
            "memory-file", "Content of arrays built in memory, then CopyToAsync to a new file", "writes × bytes", 30,
            MeasurementOf(scale, "memory-file"), Reason,
            folder => [.. scale.Points([Arrays[0], Arrays[2], Arrays[4], Arrays[5]], 2).Select(point => Column.Of(
                NameOf(point), Files, new MemoryPoint(point.Size, point.Writes, folder.PathOf("content.bin"))))]),
    ];

    private static Grid Built(Scale scale, string key, string what, string axis,
        IReadOnlyList<(int Size, int Writes)> points, IReadOnlyList<Way<MemoryPoint>> ways, double weight)
        => new(
            key,
            $"Content of {what} built in memory, then ToArray",
            axis,
            weight,
            MeasurementOf(scale, key),
            Reason,
            _ => [.. points.Select(point => Column.Of(NameOf(point), ways, new MemoryPoint(point.Size, point.Writes)))])
        {
            Operations = StreamsPerRun,
        };

    // A process of its own for every sample is slow.
    private static ProcessMeasurement MeasurementOf(Scale scale, string key) => new(key, scale.MinSlowRounds, 11);

    private static string NameOf((int Size, int Writes) point)
        => point.Size == sizeof(double) ? Figures.Count(point.Writes) : $"{Figures.Count(point.Writes)} × {Figures.Count(point.Size)} B";

    private static Way<MemoryPoint> Built<TStream>(
        string name, Func<TStream> make, Action<TStream, MemoryPoint> fill, Func<TStream, byte[]> toArray)
        where TStream : Stream
        => new(name, point =>
        {
            long bytes = 0;
            for (int i = 0; i < StreamsPerRun; i++)
            {
                using TStream stream = make();
                fill(stream, point);
                bytes += point.Check(toArray(stream));
            }

            return new(bytes);
        });

    private static Way<MemoryPoint> ToFile(string name, Func<Stream> make, bool isPipe = false) => new(
        name,
        async point =>
        {
            using Stream stream = make();
            Fill(stream, point);
            stream.Position = 0;
            await using (Stream file = isPipe ? FilePipeWriter.Create(point.Path).AsStream() : File.Create(point.Path))
            {
                await stream.CopyToAsync(file);
            }

            return new FileInfo(point.Path).Length == point.Length ? point.Length
                : throw new InvalidDataException($"The file does not have {point.Length} bytes.");
        },
        static point => File.Delete(point.Path));

    private static void Fill(Stream stream, MemoryPoint point)
    {
        byte[] piece = point.Piece;
        for (int i = 0; i < point.Writes; i++)
        {
            stream.Write(piece, 0, piece.Length);
        }
    }

    private static void FillDoubles(Stream stream, MemoryPoint point)
    {
        using BinaryWriter writer = new(stream, System.Text.Encoding.UTF8, leaveOpen: true);
        for (int number = 0; number < point.Writes; number++)
        {
            writer.Write(Value);
        }
    }
}
