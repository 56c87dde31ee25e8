namespace FilePipelinesBenchmarks.Writing;

/// <summary>The baseline: FileStream.Write behind the 4 KiB buffer that a FileStream has by default.</summary>
internal sealed class FileStreamSyncWrite() : WriteWay("FileStreamSync")
{
    internal override ValueTask<long> WriteAsync(WriteCase point)
    {
        using (FileStream stream = new(point.Path, Options(point)))
        {
            for (long offset = 0; offset < point.Length; offset += point.FlushSize)
            {
                stream.Write(point.PieceAt(offset).Span);
            }
        }

        return new ValueTask<long>(point.Finish(point.Length));
    }

    internal static FileStreamOptions Options(WriteCase point, int bufferSize = 4096)
        => new() { Mode = FileMode.Create, Access = FileAccess.Write, Share = FileShare.Read, BufferSize = bufferSize, PreallocationSize = point.PreallocationSize };
}
