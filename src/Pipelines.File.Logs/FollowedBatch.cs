namespace Pipelines.File;

/// <summary>Lines of one log that <see cref="LogFollower.ReadBatchesAsync"/> has read. There is at least one.</summary>
public sealed class FollowedBatch
{
    internal FollowedBatch(string path, IReadOnlyList<FollowedLine> lines)
        => (Path, Lines, Checkpoint) = (path, lines, lines[^1].Checkpoint);

    /// <summary>The full path of the log, also while a rotated file of it is read.</summary>
    public string Path { get; }

    /// <summary>The lines. They and their bytes are valid until the next step of the loop: copy what you want to keep.</summary>
    public IReadOnlyList<FollowedLine> Lines { get; }

    /// <summary>The position after the last line. Save it after you have used the batch.</summary>
    public FileCheckpoint Checkpoint { get; }
}
