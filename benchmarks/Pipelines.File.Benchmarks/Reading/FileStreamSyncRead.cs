namespace FilePipelinesBenchmarks.Reading;

/// <summary>
/// FileStream.Read with a new array in the caller. The baseline, as it was in 2019, has a buffer of the same size in the stream.
/// </summary>
/// <param name="name">What it is called in tables.</param>
/// <param name="streamBuffer">Bytes of the stream's own buffer, 0 for none; null: as many as the caller's.</param>
internal sealed class FileStreamSyncRead(string name, int? streamBuffer = null) : ReadWay(name)
{
    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using FileStream stream = new(
            point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, streamBuffer ?? point.BufferSize, point.Options);
        byte[] buffer = new byte[point.BufferSize];
        int length;
        while ((length = stream.Read(buffer, 0, buffer.Length)) > 0)
        {
            work.Take(buffer.AsSpan(0, length));
        }

        return new ValueTask<long>(work.Finish(point.File));
    }
}
