using Pipelines.File.Diagnostics;

namespace Pipelines.File.Follow;

/// <summary>The counts of one follower, which are a part of those of the process.</summary>
internal sealed class LogFollowerCounts
{
    internal FilePipeMetrics.Count Lines { get; } = new(FilePipeMetrics.FollowedLines);

    internal FilePipeMetrics.Count Rotations { get; } = new(FilePipeMetrics.FollowedRotations);

    internal FilePipeMetrics.Count Gaps { get; } = new(FilePipeMetrics.FollowedGaps);
}
