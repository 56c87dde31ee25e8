using System.Text.Json.Serialization;

namespace Pipelines.File.AspNetCore;

/// <summary>Writes and reads <see cref="UploadState"/> without reflection.</summary>
[JsonSourceGenerationOptions(PropertyNamingPolicy = JsonKnownNamingPolicy.CamelCase)]
[JsonSerializable(typeof(UploadState))]
internal sealed partial class UploadStateContext : JsonSerializerContext;
