using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>
/// RandomAccess.Read of 256 KiB into memory aligned to a page, looked at in pieces of the point's size: the copy out of the page cache, and
/// as little else as there can be.
/// </summary>
internal sealed unsafe class KernelCopyRead() : ReadWay(ReadWays.KernelCopyName)
{
    private const int PageSize = 4096;
    private const int CallSize = 256 * 1024;

    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using SafeFileHandle handle = File.OpenHandle(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, point.Options);
        byte* memory = (byte*)NativeMemory.AlignedAlloc(CallSize, PageSize);
        long offset = 0;
        int length;
        while ((length = RandomAccess.Read(handle, new Span<byte>(memory, CallSize), offset)) > 0)
        {
            for (int start = 0; start < length; start += point.BufferSize)
            {
                work.Take(new ReadOnlySpan<byte>(memory + start, Math.Min(point.BufferSize, length - start)));
            }

            offset += length;
        }

        NativeMemory.AlignedFree(memory);
        return new ValueTask<long>(work.Finish(point.File));
    }
}
