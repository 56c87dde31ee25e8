using System.Collections.Concurrent;
using System.Text.Json;
using System.Text.Json.Serialization;
using Pipelines.File;

namespace TailSample;

/// <summary>How far each file was read, by its whole path, and where the output was then, if it is a file.</summary>
internal sealed record State(ConcurrentDictionary<string, FileCheckpoint> Files, FileCheckpoint? Output)
{
    /// <exception cref="InvalidDataException">The file is no checkpoint.</exception>
    internal static async Task<State> LoadAsync(string path)
    {
        try
        {
            return JsonSerializer.Deserialize(await File.ReadAllBytesAsync(path), StateJson.Default.State) is { Files: not null } loaded
                ? loaded
                : throw new JsonException();
        }
        catch (FileNotFoundException)
        {
            return new State(new(), null);
        }
        catch (JsonException e)
        {
            throw new InvalidDataException($"'{path}' is no checkpoint of this program.", e);
        }
    }

    /// <summary>Under its name there is the old one or the new one, whole, whenever this program ends.</summary>
    internal async Task SaveAsync(string path)
    {
        await using FilePipeWriter writer = FilePipeWriter.Create(path, new FilePipeWriterOptions { Replace = true });
        await writer.WriteAsync(JsonSerializer.SerializeToUtf8Bytes(this, StateJson.Default.State));
        await writer.CompleteAsync();
    }
}

[JsonSerializable(typeof(State))]
[JsonSourceGenerationOptions(PropertyNamingPolicy = JsonKnownNamingPolicy.CamelCase, WriteIndented = true)]
internal sealed partial class StateJson : JsonSerializerContext;
