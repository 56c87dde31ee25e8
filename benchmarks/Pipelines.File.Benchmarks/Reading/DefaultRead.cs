using System.IO.Pipelines;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>Ways to read with no option set, as somebody writes them who has read no page on tuning.</summary>
internal sealed class DefaultRead : ReadWay
{
    private readonly Func<string, PipeReader> _open;

    private DefaultRead(string name, Func<string, PipeReader> open)
        : base(name) => _open = open;

    internal static ReadWay OfLibrary { get; } = new DefaultRead("FilePipeReader", static path => FilePipeReader.Create(path));

    internal static ReadWay OfPipeReader { get; } = new DefaultRead(
        "PipeReader.Create", static path => PipeReader.Create(File.OpenRead(path)));

    internal override ValueTask<long> ReadAsync<TWork>(ReadCase point)
        => PipeReading.ReadToEndAsync<TWork>(_open(point.File.Path), point);
}
