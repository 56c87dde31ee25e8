using System.Text.Json.Serialization;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// What the state file of a resumable upload holds. It is replaced as a whole, and its bytes of data are in a file beside it.
/// </summary>
internal sealed record UploadState
{
    /// <summary>The length of the whole upload, bytes; <see langword="null"/> as long as the client has not told it.</summary>
    public long? Length { get; init; }

    /// <summary>
    /// How many bytes of the data are kept: written, and with <see cref="ResumableUploadOptions.Durable"/> synced, before the state was. As
    /// long as an upload is not finished this is less than its length, so a client that goes on always sends something, and that finishes
    /// it.
    /// </summary>
    public long Offset { get; init; }

    /// <summary>When the upload is removed, UTC.</summary>
    public DateTime Expires { get; init; }

    /// <summary>Whose it is (<see cref="ResumableUploadOptions.Owner"/>).</summary>
    public string? Owner { get; init; }

    /// <summary>The header Upload-Metadata of the creation.</summary>
    public string? Metadata { get; init; }

    /// <summary>The header Upload-Concat of the creation.</summary>
    public string? Concat { get; init; }

    /// <summary>
    /// Whether nothing is left to do: the whole upload has its name, or, if it is a partial one, waits to be concatenated.
    /// </summary>
    public bool IsFinished { get; init; }

    /// <summary>The full path that the data is about to take, or has taken if <see cref="Identity"/> is that of the file there.</summary>
    public string? SavingTo { get; init; }

    /// <summary>The <see cref="FileIdentity"/> of the data.</summary>
    public string? Identity { get; init; }

    /// <summary>Whether it is a part of a concatenation to come.</summary>
    [JsonIgnore]
    public bool IsPartial => Concat == "partial";

    /// <summary>Whether it is a concatenation of parts.</summary>
    [JsonIgnore]
    public bool IsFinal => Concat is not null && !IsPartial;
}
