namespace Pipelines.File;

/// <summary>What a <see cref="LogFollower"/> has done so far, and how far it is behind. For a health check.</summary>
public readonly struct LogFollowerStatistics
{
    /// <summary>The files that are open now.</summary>
    public long Files { get; internal init; }

    /// <summary>
    /// The bytes that were written and not returned yet. A compressed file counts with its length on the disk.
    /// </summary>
    public long BytesBehind { get; internal init; }

    /// <summary>The lines that were returned.</summary>
    public long Lines { get; internal init; }

    /// <summary>The files that were left because the next one had taken over, or because they were gone.</summary>
    public long Rotations { get; internal init; }

    /// <summary>
    /// The bytes of holes that were skipped: NULs at the beginning of a line, two at least. A writer that does not append leaves them in a
    /// log that was truncated (copytruncate), and a crash may.
    /// </summary>
    public long BytesSkipped { get; internal init; }

    /// <summary>How often lines were missed (<see cref="FollowedLine.IsAfterGap"/>).</summary>
    public long Gaps { get; internal init; }
}
