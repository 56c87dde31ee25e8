using System.Buffers;
using FilePipelinesBenchmarks.Interop;
using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>The limit of one call a buffer: pread(2) into one rented buffer, with nothing of .NET between. Unix only.</summary>
internal sealed unsafe class SystemCallRead() : ReadWay("pread(2)")
{
    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using SafeFileHandle handle = File.OpenHandle(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, point.Options);
        int descriptor = (int)handle.DangerousGetHandle();
        byte[] buffer = ArrayPool<byte>.Shared.Rent(point.BufferSize);
        fixed (byte* address = buffer)
        {
            long offset = 0;
            nint length;
            while ((length = Libc.PRead(descriptor, address, (nuint)point.BufferSize, offset)) > 0)
            {
                work.Take(new ReadOnlySpan<byte>(address, (int)length));
                offset += length;
            }
        }

        ArrayPool<byte>.Shared.Return(buffer);
        return new ValueTask<long>(work.Finish(point.File));
    }
}
