using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>As <see cref="RandomAccessSyncWrite"/>, with WriteAsync.</summary>
internal sealed class RandomAccessAsyncWrite() : WriteWay("RandomAccess.WriteAsync")
{
    internal override async ValueTask<long> WriteAsync(WriteCase point)
    {
        using (SafeFileHandle handle = File.OpenHandle(
            point.Path, FileMode.Create, FileAccess.Write, FileShare.Read, point.Options, point.PreallocationSize))
        {
            for (long offset = 0; offset < point.Length; offset += point.FlushSize)
            {
                await RandomAccess.WriteAsync(handle, point.PieceAt(offset), offset);
            }
        }

        return point.Finish(point.Length);
    }
}
