namespace FilePipelinesBenchmarks.Writing;

/// <summary>As the baseline, with WriteAsync.</summary>
internal sealed class FileStreamAsyncWrite() : WriteWay("FileStreamAsync")
{
    internal override async ValueTask<long> WriteAsync(WriteCase point)
    {
        await using (FileStream stream = new(point.Path, FileStreamSyncWrite.Options(point)))
        {
            for (long offset = 0; offset < point.Length; offset += point.FlushSize)
            {
                await stream.WriteAsync(point.PieceAt(offset));
            }
        }

        return point.Finish(point.Length);
    }
}
