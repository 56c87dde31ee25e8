namespace FilePipelines.AspNetCore.Tests;

/// <summary>The system's time, and what a test adds to it; timers do not know what was added.</summary>
internal sealed class ManualTime : TimeProvider
{
    private long _added;

    public override DateTimeOffset GetUtcNow() => base.GetUtcNow() + TimeSpan.FromTicks(Volatile.Read(ref _added));

    public override long GetTimestamp()
        => base.GetTimestamp() + (long)(TimeSpan.FromTicks(Volatile.Read(ref _added)).TotalSeconds * TimestampFrequency);

    public void Advance(TimeSpan time) => Interlocked.Add(ref _added, time.Ticks);
}
