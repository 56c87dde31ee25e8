using System.Text.Json;

namespace FilePipelinesBenchmarks.Parsing;

/// <summary>One JSON document a line, deserialised by System.Text.Json with generated code; the sum of what a field says.</summary>
internal struct NdjsonParser : ILineParser
{
    private long _sum;

    public void Take(ReadOnlySpan<byte> line) => _sum += JsonSerializer.Deserialize(line, LogEventContext.Default.LogEvent)!.Bytes;

    public void Take(string line) => _sum += JsonSerializer.Deserialize(line, LogEventContext.Default.LogEvent)!.Bytes;

    public readonly long Finish() => _sum;
}
