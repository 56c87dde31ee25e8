using System.IO.Pipelines;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>
/// What .NET offers: PipeWriter.Create over a FileStream, without a second buffer in the stream, which every flush would empty anyway.
/// Completing it closes the stream.
/// </summary>
internal sealed class PipeWriterCreateWrite() : WriteWay("PipeWriter.Create")
{
    internal override ValueTask<long> WriteAsync(WriteCase point)
        => PipeWriting.WriteToEndAsync(
            PipeWriter.Create(new FileStream(point.Path, FileStreamSyncWrite.Options(point, streamBuffer: 0))), point);
}
