namespace FilePipelinesBenchmarks.Reading;

/// <summary>As the baseline, with ReadAsync.</summary>
internal sealed class FileStreamAsyncRead() : ReadWay("FileStreamAsync")
{
    internal override async ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        TWork work = default;
        using FileStream stream = new(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, point.BufferSize, point.Options);
        byte[] buffer = new byte[point.BufferSize];
        int length;
        while ((length = await stream.ReadAsync(buffer)) > 0)
        {
            work.Take(buffer.AsSpan(0, length));
        }

        return work.Finish(point.File);
    }
}
