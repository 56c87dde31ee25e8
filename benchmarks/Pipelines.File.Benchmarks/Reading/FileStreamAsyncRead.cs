namespace FilePipelinesBenchmarks.Reading;

/// <summary>As <see cref="FileStreamSyncRead"/>, with ReadAsync.</summary>
/// <param name="name">What it is called in tables.</param>
/// <param name="streamBuffer">Bytes of the stream's own buffer, 0 for none; null: as many as the caller's.</param>
internal sealed class FileStreamAsyncRead(string name, int? streamBuffer = null) : ReadWay(name)
{
    internal override async ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using FileStream stream = new(
            point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, streamBuffer ?? point.BufferSize, point.Options);
        byte[] buffer = new byte[point.BufferSize];
        int length;
        while ((length = await stream.ReadAsync(buffer)) > 0)
        {
            work.Take(buffer.AsSpan(0, length));
        }

        return work.Finish(point.File);
    }
}
