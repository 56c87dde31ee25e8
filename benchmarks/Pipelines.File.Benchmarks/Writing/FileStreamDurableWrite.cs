namespace FilePipelinesBenchmarks.Writing;

/// <summary>
/// What a durable write is in .NET: write without a buffer in between, then Flush(flushToDisk: true), each waiting for the device.
/// </summary>
internal sealed class FileStreamDurableWrite() : WriteWay("FileStream, flush to disk")
{
    internal override ValueTask<long> WriteAsync(WriteCase point)
    {
        using (FileStream stream = new(point.Path, FileStreamSyncWrite.Options(point, streamBuffer: 0)))
        {
            for (long offset = 0; offset < point.Length; offset += point.FlushSize)
            {
                stream.Write(point.PieceAt(offset).Span);
                stream.Flush(flushToDisk: true);
            }
        }

        return new ValueTask<long>(point.Finish(point.Length));
    }
}
