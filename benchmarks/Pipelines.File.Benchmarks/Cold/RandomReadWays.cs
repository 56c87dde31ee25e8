using System.Buffers;
using System.IO.Pipelines;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Cold;

/// <summary>Every way to read at random from many readers at once; the first is the baseline.</summary>
internal static class RandomReadWays
{
    internal static RandomReadWay Blocking { get; } = new("RandomAccess.Read, one task a reader", static (handle, point, reader) =>
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(point.PieceSize);
        long bytes = 0;
        foreach (long offset in point.OffsetsOf(reader))
        {
            int length = RandomAccess.Read(handle, buffer.AsSpan(0, point.PieceSize), offset);
            bytes += point.Look(offset, buffer.AsSpan(0, length));
        }

        ArrayPool<byte>.Shared.Return(buffer);
        return Task.FromResult(bytes);
    });

    internal static RandomReadWay Asynchronous { get; } = new("RandomAccess.ReadAsync", static async (handle, point, reader) =>
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(point.PieceSize);
        long bytes = 0;
        foreach (long offset in point.OffsetsOf(reader))
        {
            int length = await RandomAccess.ReadAsync(handle, buffer.AsMemory(0, point.PieceSize), offset);
            bytes += point.Look(offset, buffer.AsSpan(0, length));
        }

        ArrayPool<byte>.Shared.Return(buffer);
        return bytes;
    });

    internal static RandomReadWay FilePipeReader { get; } = new("FilePipeReader", static async (handle, point, reader) =>
    {
        long bytes = 0;
        foreach (long offset in point.OffsetsOf(reader))
        {
            FilePipeReader pipe = global::Pipelines.File.FilePipeReader.Create(
                handle,
                new FilePipeReaderOptions { Offset = offset, Length = point.PieceSize, BufferSize = point.PieceSize, LeaveOpen = true });
            ReadResult result = await pipe.ReadAtLeastAsync(point.PieceSize);
            bytes += point.Look(offset, result.Buffer.FirstSpan);
            await pipe.CompleteAsync();
        }

        return bytes;
    });

    internal static IReadOnlyList<RandomReadWay> All { get; } = [Blocking, Asynchronous, FilePipeReader];
}
