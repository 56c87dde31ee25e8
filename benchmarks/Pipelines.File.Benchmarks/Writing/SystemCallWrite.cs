using System.ComponentModel;
using FilePipelinesBenchmarks.Interop;
using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>The limit of one call a piece: pwrite(2), with nothing of .NET between. Unix only.</summary>
internal sealed unsafe class SystemCallWrite() : WriteWay("pwrite(2)")
{
    internal override ValueTask<long> WriteAsync(WriteCase point)
    {
        using (SafeFileHandle handle = File.OpenHandle(
            point.Path, FileMode.Create, FileAccess.Write, FileShare.Read, point.Options, point.PreallocationSize))
        {
            int descriptor = (int)handle.DangerousGetHandle();
            for (long offset = 0; offset < point.Length; offset += point.FlushSize)
            {
                fixed (byte* address = point.PieceAt(offset).Span)
                {
                    if (Libc.PWrite(descriptor, address, (nuint)point.FlushSize, offset) != point.FlushSize)
                    {
                        throw new Win32Exception();
                    }
                }
            }
        }

        return new ValueTask<long>(point.Finish(point.Length));
    }
}
