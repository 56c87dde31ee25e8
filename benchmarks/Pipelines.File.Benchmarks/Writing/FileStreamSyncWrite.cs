namespace FilePipelinesBenchmarks.Writing;

/// <summary>FileStream.Write. The baseline has the 4 KiB buffer that a FileStream has by default.</summary>
internal sealed class FileStreamSyncWrite(
    string name, int streamBuffer = FileStreamSyncWrite.DefaultStreamBuffer, FileMode mode = FileMode.Create) : WriteWay(name)
{
    internal const int DefaultStreamBuffer = 4096;

    internal override ValueTask<long> WriteAsync(WriteCase point)
    {
        using (FileStream stream = new(point.Path, Options(point, streamBuffer, mode)))
        {
            for (long offset = 0; offset < point.Length; offset += point.FlushSize)
            {
                stream.Write(point.PieceAt(offset).Span);
            }
        }

        return new ValueTask<long>(point.Finish(point.Length));
    }

    internal static FileStreamOptions Options(WriteCase point, int streamBuffer, FileMode mode = FileMode.Create)
        => new()
        {
            Mode = mode,
            Access = FileAccess.Write,
            Share = FileShare.Read,
            BufferSize = streamBuffer,
            PreallocationSize = point.PreallocationSize,
            Options = point.Options,
        };
}
