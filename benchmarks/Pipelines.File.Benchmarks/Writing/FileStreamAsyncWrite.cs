namespace FilePipelinesBenchmarks.Writing;

/// <summary>As <see cref="FileStreamSyncWrite"/>, with WriteAsync.</summary>
internal sealed class FileStreamAsyncWrite(string name, int streamBuffer = FileStreamSyncWrite.DefaultStreamBuffer) : WriteWay(name)
{
    internal override async ValueTask<long> WriteAsync(WriteCase point)
    {
        await using (FileStream stream = new(point.Path, FileStreamSyncWrite.Options(point, streamBuffer)))
        {
            for (long offset = 0; offset < point.Length; offset += point.FlushSize)
            {
                await stream.WriteAsync(point.PieceAt(offset));
            }
        }

        return point.Finish(point.Length);
    }
}
