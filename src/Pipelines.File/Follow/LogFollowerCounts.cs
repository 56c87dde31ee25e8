using Pipelines.File.Diagnostics;

namespace Pipelines.File.Follow;

/// <summary>Counts the events of one follower, and adds them to the counters of the process. Any thread may call its members.</summary>
internal sealed class LogFollowerCounts
{
    private long _lines;
    private long _rotations;
    private long _gaps;

    internal LogFollowerStatistics Get(LogSet? set) => new()
    {
        Files = set?.Files ?? 0,
        Lines = Volatile.Read(ref _lines),
        Rotations = Volatile.Read(ref _rotations),
        Gaps = Volatile.Read(ref _gaps),
        BytesBehind = set?.BytesBehind ?? 0,
    };

    internal void AddLines(int number)
    {
        Interlocked.Add(ref _lines, number);
        FilePipeMetrics.FollowedLines.Add(number);
    }

    internal void AddRotation()
    {
        Interlocked.Increment(ref _rotations);
        FilePipeMetrics.FollowedRotations.Add();
    }

    internal void AddGap()
    {
        Interlocked.Increment(ref _gaps);
        FilePipeMetrics.FollowedGaps.Add();
    }
}
