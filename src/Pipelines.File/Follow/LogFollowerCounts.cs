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

    internal void AddLines(int number) => Add(ref _lines, FilePipeMetrics.FollowedLines, number);

    internal void AddRotation() => Add(ref _rotations, FilePipeMetrics.FollowedRotations, 1);

    internal void AddGap() => Add(ref _gaps, FilePipeMetrics.FollowedGaps, 1);

    private static void Add(ref long own, FilePipeMetrics.Count all, int number)
    {
        Interlocked.Add(ref own, number);
        all.Add(number);
    }
}
