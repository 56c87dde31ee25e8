using System.Runtime.InteropServices;
using Microsoft.IO;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Memory;

/// <summary>Every way to build content in memory; the first of a list is its baseline.</summary>
internal static class MemoryWays
{
    /// <summary>What every double is.</summary>
    private const double Value = 1.0;

    private static readonly RecyclableMemoryStreamManager s_manager = new();

    /// <summary>Arrays written, and the content as an array.</summary>
    internal static IReadOnlyList<MemoryWay> Bytes { get; } =
    [
        new("MemoryStream", static point => WriteArrays(point, static () => new MemoryStream(), static stream => stream.ToArray())),
        new("RecyclableMemoryStream", static point => WriteArrays(point, s_manager.GetStream, static stream => stream.ToArray())),
        new("PooledMemoryStream",
            static point => WriteArrays(point, static () => new PooledMemoryStream(), static stream => stream.ToArray())),
    ];

    /// <summary>Doubles written one by one, and the content as an array.</summary>
    internal static IReadOnlyList<MemoryWay> Doubles { get; } =
    [
        new("MemoryStream with BinaryWriter",
            static point => WriteDoubles(point, static () => new MemoryStream(), static stream => stream.ToArray())),
        new("RecyclableMemoryStream with BinaryWriter",
            static point => WriteDoubles(point, s_manager.GetStream, static stream => stream.ToArray())),
        new("PooledMemoryStream with BinaryWriter",
            static point => WriteDoubles(point, static () => new PooledMemoryStream(), static stream => stream.ToArray())),
        new("PooledMemoryStream", WriteDoublesTyped),
    ];

    /// <summary>Arrays written, and the content copied to a new file.</summary>
    internal static IReadOnlyList<MemoryWay> Files { get; } =
    [
        new("MemoryStream to FileStream", static point => WriteFileAsync(point, static () => new MemoryStream(), ToFileStreamAsync)),
        new("RecyclableMemoryStream to FileStream", static point => WriteFileAsync(point, s_manager.GetStream, ToFileStreamAsync)),
        new("PooledMemoryStream to FileStream",
            static point => WriteFileAsync(point, static () => new PooledMemoryStream(), ToFileStreamAsync)),
        new("PooledMemoryStream to FilePipeWriter",
            static point => WriteFileAsync(point, static () => new PooledMemoryStream(), ToFilePipeWriterAsync)),
    ];

    private static ValueTask<long> WriteArrays<TStream>(MemoryCase point, Func<TStream> make, Func<TStream, byte[]> toArray)
        where TStream : Stream
    {
        long bytes = 0;
        for (int i = 0; i < point.Streams; i++)
        {
            using TStream stream = make();
            Fill(stream, point);
            bytes += point.Check(toArray(stream));
        }

        return new ValueTask<long>(bytes);
    }

    private static ValueTask<long> WriteDoubles<TStream>(MemoryCase point, Func<TStream> make, Func<TStream, byte[]> toArray)
        where TStream : Stream
    {
        long bytes = 0;
        for (int i = 0; i < point.Streams; i++)
        {
            using TStream stream = make();
            using BinaryWriter writer = new(stream);
            for (int number = 0; number < point.Writes; number++)
            {
                writer.Write(Value);
            }

            bytes += CheckDoubles(point, toArray(stream));
        }

        return new ValueTask<long>(bytes);
    }

    private static ValueTask<long> WriteDoublesTyped(MemoryCase point)
    {
        long bytes = 0;
        for (int i = 0; i < point.Streams; i++)
        {
            using PooledMemoryStream stream = new();
            for (int number = 0; number < point.Writes; number++)
            {
                stream.WriteDoubleLittleEndian(Value);
            }

            bytes += CheckDoubles(point, stream.ToArray());
        }

        return new ValueTask<long>(bytes);
    }

    private static async ValueTask<long> WriteFileAsync<TStream>(
        MemoryCase point, Func<TStream> make, Func<TStream, string, ValueTask> copyAsync)
        where TStream : Stream
    {
        using TStream stream = make();
        Fill(stream, point);
        stream.Position = 0;
        await copyAsync(stream, point.Path);
        return point.CheckFile();
    }

    private static async ValueTask ToFileStreamAsync(Stream stream, string path)
    {
        await using FileStream file = new(path, FileMode.Create, FileAccess.Write, FileShare.None);
        await stream.CopyToAsync(file);
    }

    private static async ValueTask ToFilePipeWriterAsync(PooledMemoryStream stream, string path)
    {
        FilePipeWriter file = FilePipeWriter.Create(path);
        await stream.CopyToAsync(file);
        await file.CompleteAsync();
    }

    private static void Fill(Stream stream, MemoryCase point)
    {
        byte[] piece = point.Piece;
        for (int i = 0; i < point.Writes; i++)
        {
            stream.Write(piece, 0, piece.Length);
        }
    }

    private static long CheckDoubles(MemoryCase point, byte[] content)
        => content.Length == point.Length && MemoryMarshal.Read<double>(content.AsSpan(content.Length - sizeof(double))) == Value
            ? point.Length
            : throw new InvalidDataException($"{content.Length} bytes instead of {point.Length}.");
}
