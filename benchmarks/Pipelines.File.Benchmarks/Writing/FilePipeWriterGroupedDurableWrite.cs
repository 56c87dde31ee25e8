using System.IO.Pipelines;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>Durable flushes of this library, of which several wait at once: one sync serves all that wait for one.</summary>
internal sealed class FilePipeWriterGroupedDurableWrite() : WriteWay("FilePipeWriter, durable, 16 flushes wait")
{
    private const int Waiting = 16;

    internal override async ValueTask<long> WriteAsync(WriteCase point)
    {
        FilePipeWriter writer = FilePipeWriter.Create(
            point.Path, new FilePipeWriterOptions { FlushGuarantee = FlushGuarantee.Durable, PreallocationSize = point.PreallocationSize });
        Queue<Task<FlushResult>> flushes = new(Waiting);
        for (long offset = 0; offset < point.Length; offset += point.FlushSize)
        {
            if (flushes.Count == Waiting)
            {
                await flushes.Dequeue();
            }

            flushes.Enqueue(writer.WriteAsync(point.PieceAt(offset)).AsTask());
        }

        while (flushes.TryDequeue(out Task<FlushResult>? flush))
        {
            await flush;
        }

        await writer.CompleteAsync();
        return point.Finish(point.Length);
    }
}
