namespace FilePipelinesBenchmarks.Reading;

/// <summary>The baseline, as it was in 2019: FileStream.Read with a buffer of the same size in the stream and a new array of that size in the caller.</summary>
internal sealed class FileStreamSyncRead() : ReadWay("FileStreamSync")
{
    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using FileStream stream = new(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, point.BufferSize, point.Options);
        byte[] buffer = new byte[point.BufferSize];
        int length;
        while ((length = stream.Read(buffer, 0, buffer.Length)) > 0)
        {
            work.Take(buffer.AsSpan(0, length));
        }

        return new ValueTask<long>(work.Finish(point.File));
    }
}
