using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>The handle itself, one call a piece.</summary>
internal sealed class RandomAccessSyncWrite() : WriteWay("RandomAccess.Write")
{
    internal override ValueTask<long> WriteAsync(WriteCase point)
    {
        using (SafeFileHandle handle = File.OpenHandle(
            point.Path, FileMode.Create, FileAccess.Write, FileShare.Read, point.Options, point.PreallocationSize))
        {
            for (long offset = 0; offset < point.Length; offset += point.FlushSize)
            {
                RandomAccess.Write(handle, point.PieceAt(offset).Span, offset);
            }
        }

        return new ValueTask<long>(point.Finish(point.Length));
    }
}
