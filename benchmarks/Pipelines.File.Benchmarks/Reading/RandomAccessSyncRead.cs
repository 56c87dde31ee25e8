using System.Buffers;
using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>The handle itself, a rented buffer, one call a buffer.</summary>
internal sealed class RandomAccessSyncRead() : ReadWay("RandomAccess.Read")
{
    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using SafeFileHandle handle = File.OpenHandle(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, point.Options);
        byte[] buffer = ArrayPool<byte>.Shared.Rent(point.BufferSize);
        long offset = 0;
        int length;
        while ((length = RandomAccess.Read(handle, buffer.AsSpan(0, point.BufferSize), offset)) > 0)
        {
            work.Take(buffer.AsSpan(0, length));
            offset += length;
        }

        ArrayPool<byte>.Shared.Return(buffer);
        return new ValueTask<long>(work.Finish(point.File));
    }
}
