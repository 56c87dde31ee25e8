using System.IO.Pipelines;
using FilePipelinesBenchmarks.Writing;
using Nerdbank.Streams;

namespace FilePipelinesBenchmarks.Peers;

/// <summary>A file written through another package.</summary>
internal static class PeerWrites
{
    internal static WriteWay UsePipeWriter { get; } = new UsePipeWriterWrite();

    private sealed class UsePipeWriterWrite() : WriteWay("Nerdbank UsePipeWriter")
    {
        internal override async ValueTask<long> WriteAsync(WriteCase point)
        {
            // Neither a flush nor completing this writer waits for the stream to have the bytes: the end of the reader behind it does.
            TaskCompletionSource<Exception?> written = new(TaskCreationOptions.RunContinuationsAsynchronously);
            await using (FileStream stream = new(point.Path, FileStreamSyncWrite.Options(point, streamBuffer: 0)))
            {
                PipeWriter writer = stream.UsePipeWriter();
#pragma warning disable CS0618 // Not every PipeWriter calls back; that of a Pipe, which this is, does, and nothing else tells.
                writer.OnReaderCompleted(
                    static (exception, state) => ((TaskCompletionSource<Exception?>)state!).SetResult(exception), written);
#pragma warning restore CS0618
                for (long offset = 0; offset < point.Length; offset += point.FlushSize)
                {
                    await writer.WriteAsync(point.PieceAt(offset));
                }

                await writer.CompleteAsync();
                if (await written.Task is { } exception)
                {
                    throw exception;
                }
            }

            return point.Finish(point.Length);
        }
    }
}
