using System.IO.Pipelines;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>What .NET offers: PipeReader.Create over a FileStream, without a second buffer in the stream.</summary>
internal sealed class PipeReaderCreateRead() : ReadWay("PipeReader.Create")
{
    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        FileStream stream = new(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, point.Options);
        return PipeReading.ReadToEndAsync<TWork>(
            PipeReader.Create(stream, new StreamPipeReaderOptions(bufferSize: point.BufferSize)), point);
    }
}
