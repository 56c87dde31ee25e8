using DotNext.IO;
using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>DotNext.IO: FileReader, a buffer over the handle, with a buffer of that size.</summary>
internal sealed class DotNextFileReaderRead() : ReadWay("DotNext FileReader")
{
    internal override async ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using SafeFileHandle handle = File.OpenHandle(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, point.Options);
        using FileReader reader = new(handle) { MaxBufferSize = point.BufferSize };
        while (await reader.ReadAsync())
        {
            work.Take(reader.Buffer.Span);
            reader.Consume(reader.Buffer.Length);
        }

        return work.Finish(point.File);
    }
}
