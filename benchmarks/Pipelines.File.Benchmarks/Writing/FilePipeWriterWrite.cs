using Pipelines.File;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>This library: <see cref="FilePipeWriter"/> with one of its guarantees.</summary>
internal sealed class FilePipeWriterWrite(string name, FlushGuarantee guarantee, FileMode mode = FileMode.Create) : WriteWay(name)
{
    internal override ValueTask<long> WriteAsync(WriteCase point)
    {
        FilePipeWriterOptions options =
            new() { Mode = mode, FlushGuarantee = guarantee, PreallocationSize = point.PreallocationSize, FileOptions = point.Options };
        return PipeWriting.WriteToEndAsync(FilePipeWriter.Create(point.Path, options), point);
    }
}
