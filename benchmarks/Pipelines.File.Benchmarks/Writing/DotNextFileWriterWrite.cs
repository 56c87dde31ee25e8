using DotNext.IO;
using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>
/// DotNext.IO: FileWriter, a buffer over the handle, with a buffer of one piece (at least its own least) and no flush between.
/// </summary>
internal sealed class DotNextFileWriterWrite() : WriteWay("DotNext FileWriter")
{
    internal override async ValueTask<long> WriteAsync(WriteCase point)
    {
        using (SafeFileHandle handle = File.OpenHandle(
            point.Path, FileMode.Create, FileAccess.Write, FileShare.Read, point.Options, point.PreallocationSize))
        {
            using FileWriter writer = new(handle) { MaxBufferSize = Math.Max(point.FlushSize, 4096) };
            for (long offset = 0; offset < point.Length; offset += point.FlushSize)
            {
                await writer.WriteAsync(point.PieceAt(offset));
            }

            await writer.WriteAsync();
        }

        return point.Finish(point.Length);
    }
}
