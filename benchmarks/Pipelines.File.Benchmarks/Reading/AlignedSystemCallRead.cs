using System.Runtime.InteropServices;
using FilePipelinesBenchmarks.Interop;
using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>pread(2) into memory that starts a given number of bytes behind a page: what alignment alone costs. Unix only.</summary>
internal sealed unsafe class AlignedSystemCallRead(int skew) : ReadWay($"pread(2), page + {skew} B")
{
    private const int PageSize = 4096;

    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using SafeFileHandle handle = File.OpenHandle(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, point.Options);
        int descriptor = (int)handle.DangerousGetHandle();
        byte* page = (byte*)NativeMemory.AlignedAlloc((nuint)point.BufferSize + PageSize, PageSize);
        long offset = 0;
        nint length;
        while ((length = Libc.PRead(descriptor, page + skew, (nuint)point.BufferSize, offset)) > 0)
        {
            work.Take(new ReadOnlySpan<byte>(page + skew, (int)length));
            offset += length;
        }

        NativeMemory.AlignedFree(page);
        return new ValueTask<long>(work.Finish(point.File));
    }
}
