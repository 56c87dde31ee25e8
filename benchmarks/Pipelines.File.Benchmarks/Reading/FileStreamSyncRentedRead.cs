using System.Buffers;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>The baseline made as good as it gets: no buffer in the stream, and the caller's array out of the shared pool.</summary>
internal sealed class FileStreamSyncRentedRead() : ReadWay("FileStreamSync, rented buffer")
{
    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using FileStream stream = new(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, point.Options);
        byte[] buffer = ArrayPool<byte>.Shared.Rent(point.BufferSize);
        int length;
        while ((length = stream.Read(buffer, 0, point.BufferSize)) > 0)
        {
            work.Take(buffer.AsSpan(0, length));
        }

        ArrayPool<byte>.Shared.Return(buffer);
        return new ValueTask<long>(work.Finish(point.File));
    }
}
