using System.Buffers;
using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>As <see cref="RandomAccessSyncRead"/>, with ReadAsync.</summary>
internal sealed class RandomAccessAsyncRead() : ReadWay("RandomAccess.ReadAsync")
{
    internal override async ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using SafeFileHandle handle = File.OpenHandle(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, point.Options);
        byte[] buffer = ArrayPool<byte>.Shared.Rent(point.BufferSize);
        long offset = 0;
        int length;
        while ((length = await RandomAccess.ReadAsync(handle, buffer.AsMemory(0, point.BufferSize), offset)) > 0)
        {
            work.Take(buffer.AsSpan(0, length));
            offset += length;
        }

        ArrayPool<byte>.Shared.Return(buffer);
        return work.Finish(point.File);
    }
}
