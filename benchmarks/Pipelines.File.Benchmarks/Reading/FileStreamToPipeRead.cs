using System.IO.Pipelines;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>What programs write by hand (PipelineAdapter in 2019): a loop that reads a FileStream into a Pipe, beside the parser.</summary>
internal sealed class FileStreamToPipeRead() : ReadWay("FileStream to Pipe")
{
    private const int DefaultPauseThreshold = 64 * 1024;

    internal override async ValueTask<long> ReadAsync<TWork>(ReadCase point)
    {
        // Room for two buffers, so that both sides can work.
        long pause = Math.Max(DefaultPauseThreshold, 2L * point.BufferSize);
        Pipe pipe = new(new PipeOptions(minimumSegmentSize: point.BufferSize, pauseWriterThreshold: pause,
            resumeWriterThreshold: pause / 2, useSynchronizationContext: false));
        Task filling = FillAsync(pipe.Writer, point);
        long answer = await PipeReading.ReadToEndAsync<TWork>(pipe.Reader, point);
        await filling;
        return answer;
    }

    private static async Task FillAsync(PipeWriter writer, ReadCase point)
    {
        using FileStream stream = new(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, point.Options);
        int length;
        while ((length = await stream.ReadAsync(writer.GetMemory(point.BufferSize))) > 0)
        {
            writer.Advance(length);
            await writer.FlushAsync();
        }

        await writer.CompleteAsync();
    }
}
