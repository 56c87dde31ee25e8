namespace Pipelines.File;

/// <summary>The counts of one follower, which are a part of those of the process.</summary>
internal sealed class LogFollowerCounts(LogFollowerCounts? all)
{
    internal Count Lines { get; } = new(all?.Lines);

    internal Count Rotations { get; } = new(all?.Rotations);

    internal Count Gaps { get; } = new(all?.Gaps);

    internal Count Skipped { get; } = new(all?.Skipped);

    /// <summary>A count. Any thread may add to it and read it.</summary>
    /// <param name="all">The count that this is a part of.</param>
    internal sealed class Count(Count? all)
    {
        private long _value;

        internal long Value => Volatile.Read(ref _value);

        internal void Add(long number = 1)
        {
            Interlocked.Add(ref _value, number);
            all?.Add(number);
        }
    }
}
