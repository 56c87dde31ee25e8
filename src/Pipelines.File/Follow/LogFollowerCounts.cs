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

    internal void AddBatch(FollowedBatch batch)
    {
        Add(ref _lines, FilePipeMetrics.FollowedLines, batch.Lines.Count);
        Add(ref _gaps, FilePipeMetrics.FollowedGaps, batch.Lines[0].IsAfterGap ? 1 : 0);
    }

    internal void AddRotation() => Add(ref _rotations, FilePipeMetrics.FollowedRotations, 1);

    private static void Add(ref long own, FilePipeMetrics.Count all, int number)
    {
        Interlocked.Add(ref own, number);
        all.Add(number);
    }
}
