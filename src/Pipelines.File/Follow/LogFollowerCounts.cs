using Pipelines.File.Diagnostics;

namespace Pipelines.File.Follow;

/// <summary>Counts the events of one follower, and adds them to the counters of the process. Any thread may call its members.</summary>
internal sealed class LogFollowerCounts
{
    private long _files;
    private long _lines;
    private long _rotations;
    private long _gaps;

    internal long Files => Volatile.Read(ref _files);

    internal LogFollowerStatistics Get(long bytesBehind) => new()
    {
        Files = Files,
        Lines = Volatile.Read(ref _lines),
        Rotations = Volatile.Read(ref _rotations),
        Gaps = Volatile.Read(ref _gaps),
        BytesBehind = bytesBehind,
    };

    internal void AddFile(int number) => Interlocked.Add(ref _files, number);

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
