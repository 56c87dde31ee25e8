using System.Text.Json;
using System.Text.Json.Serialization;
using Pipelines.File;

namespace TailSample;

/// <summary>How far each file was read, and where the output was then.</summary>
/// <param name="Files">The files that have their name, or that were not read to their end.</param>
/// <param name="Read">Files that were read to their end and are still there by another name.</param>
/// <param name="Output">Which file standard output was; <see langword="null"/>: none.</param>
/// <param name="OutputPosition">Where it ended, bytes.</param>
internal sealed record Checkpoint(IReadOnlyList<CheckpointFile> Files, IReadOnlyList<CheckpointFile> Read, string? Output, long OutputPosition)
{
    internal static Checkpoint Empty { get; } = new([], [], null, 0);

    /// <summary>What was kept, or nothing where there is no such file.</summary>
    /// <exception cref="InvalidDataException">It is no checkpoint.</exception>
    internal static async Task<Checkpoint> LoadAsync(string path)
    {
        try
        {
            byte[] json = await File.ReadAllBytesAsync(path);
            Checkpoint? loaded = JsonSerializer.Deserialize(json, CheckpointJson.Default.Checkpoint);
            return loaded is { Files: not null, Read: not null } && loaded.Files.Concat(loaded.Read).All(file => FileIdentity.TryParse(file.Identity, null, out _) && file is { Name: not null, Position: >= 0 })
                ? loaded
                : throw new InvalidDataException($"'{path}' is no checkpoint of this program.");
        }
        catch (FileNotFoundException)
        {
            return Empty;
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
        await writer.WriteAsync(JsonSerializer.SerializeToUtf8Bytes(this, CheckpointJson.Default.Checkpoint));
        await writer.CompleteAsync();
    }
}

/// <summary>How far one file was read.</summary>
/// <param name="Name">The name that it was followed by, a whole path.</param>
/// <param name="Identity">Which file it is.</param>
/// <param name="Position">Behind the last line that is in the output, bytes.</param>
internal sealed record CheckpointFile(string Name, string Identity, long Position);

[JsonSerializable(typeof(Checkpoint))]
[JsonSourceGenerationOptions(PropertyNamingPolicy = JsonKnownNamingPolicy.CamelCase, WriteIndented = true)]
internal sealed partial class CheckpointJson : JsonSerializerContext;
