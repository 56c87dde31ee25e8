using Pipelines.File;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>This library: <see cref="FilePipeReader"/>, with segments of the buffer size.</summary>
internal sealed class FilePipeReaderRead(string name, long readAhead) : ReadWay(name)
{
    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        FilePipeReaderOptions options =
            new() { BufferSize = point.BufferSize, FileOptions = point.Options, PauseReadAheadThreshold = readAhead };
        return PipeReading.ReadToEndAsync<TWork>(FilePipeReader.Create(point.File.Path, options), point);
    }
}
