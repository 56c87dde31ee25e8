using System.Text.Json;
using System.Text.Json.Serialization;

namespace Pipelines.File;

/// <summary>
/// A <see cref="FileCheckpoint"/> in JSON: its text as a string. It needs no reflection, so that it works trimmed and with NativeAOT.
/// </summary>
public sealed class FileCheckpointJsonConverter : JsonConverter<FileCheckpoint>
{
    /// <inheritdoc/>
    /// <exception cref="JsonException">The value is no string, or not the text of a checkpoint.</exception>
    public override FileCheckpoint Read(ref Utf8JsonReader reader, Type typeToConvert, JsonSerializerOptions options)
        => reader.TokenType == JsonTokenType.String && FileCheckpoint.TryParse(reader.GetString(), out FileCheckpoint checkpoint)
            ? checkpoint
            : throw new JsonException("This is not the text of a FileCheckpoint.");

    /// <inheritdoc/>
    /// <exception cref="InvalidOperationException"><paramref name="value"/> is <see langword="default"/>.</exception>
    /// <exception cref="ArgumentNullException"><paramref name="writer"/> is <see langword="null"/>.</exception>
    public override void Write(Utf8JsonWriter writer, FileCheckpoint value, JsonSerializerOptions options)
    {
        ArgumentNullException.ThrowIfNull(writer);
        writer.WriteStringValue(value.ToString());
    }
}
