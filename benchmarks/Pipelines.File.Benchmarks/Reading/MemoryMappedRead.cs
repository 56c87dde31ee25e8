using System.IO.MemoryMappedFiles;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>
/// The file mapped into memory, looked at in pieces of the buffer size: nothing is copied, and the system makes each page accessible when
/// it is touched first.
/// </summary>
internal sealed unsafe class MemoryMappedRead() : ReadWay("MemoryMappedFile")
{
    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using MemoryMappedFile mapped = MemoryMappedFile.CreateFromFile(
            point.File.Path, FileMode.Open, mapName: null, 0, MemoryMappedFileAccess.Read);
        using MemoryMappedViewAccessor view = mapped.CreateViewAccessor(0, 0, MemoryMappedFileAccess.Read);
        byte* start = null;
        view.SafeMemoryMappedViewHandle.AcquirePointer(ref start);
        try
        {
            for (long offset = 0; offset < point.File.Length; offset += point.BufferSize)
            {
                work.Take(new ReadOnlySpan<byte>(start + offset, (int)Math.Min(point.BufferSize, point.File.Length - offset)));
            }
        }
        finally
        {
            view.SafeMemoryMappedViewHandle.ReleasePointer();
        }

        return new ValueTask<long>(work.Finish(point.File));
    }
}
