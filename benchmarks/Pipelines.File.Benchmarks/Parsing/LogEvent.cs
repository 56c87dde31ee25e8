using System.Text.Json.Serialization;

namespace FilePipelinesBenchmarks.Parsing;

/// <summary>A line of the NDJSON file.</summary>
internal sealed record LogEvent(long Id, string Method, string Path, int Status, long Bytes);

[JsonSerializable(typeof(LogEvent))]
[JsonSourceGenerationOptions(PropertyNamingPolicy = JsonKnownNamingPolicy.CamelCase)]
internal sealed partial class LogEventContext : JsonSerializerContext;
