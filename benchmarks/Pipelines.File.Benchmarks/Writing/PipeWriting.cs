using System.IO.Pipelines;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>What every way behind a <see cref="PipeWriter"/> shares: copy a piece, flush, and so on to the end.</summary>
internal static class PipeWriting
{
    internal static async ValueTask<long> WriteToEndAsync(PipeWriter writer, WriteCase point)
    {
        for (long offset = 0; offset < point.Length; offset += point.FlushSize)
        {
            await writer.WriteAsync(point.PieceAt(offset));
        }

        await writer.CompleteAsync();
        return point.Finish(point.Length);
    }
}
