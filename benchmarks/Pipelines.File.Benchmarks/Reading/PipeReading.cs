using System.Buffers;
using System.IO.Pipelines;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>What every way behind a <see cref="PipeReader"/> shares: read to the end, segment by segment.</summary>
internal static class PipeReading
{
    internal static async ValueTask<long> ReadToEndAsync<TWork>(PipeReader reader, ReadCase point)
        where TWork : struct, IBufferWork
    {
        TWork work = default;
        while (true)
        {
            ReadResult result = await reader.ReadAsync();
            ReadOnlySequence<byte> buffer = result.Buffer;
            foreach (ReadOnlyMemory<byte> segment in buffer)
            {
                work.Take(segment.Span);
            }

            reader.AdvanceTo(buffer.End);
            if (result.IsCompleted)
            {
                break;
            }
        }

        await reader.CompleteAsync();
        return work.Finish(point.File);
    }
}
