using Pipelines.File.Writing;

namespace FilePipelinesTests;

/// <summary>A clock that goes only as a test says. Its timestamps are microseconds.</summary>
internal sealed class StoppedClock : TimeProvider
{
    public long Now { get; set; } = 1;

    public override long TimestampFrequency => 1_000_000;

    public override long GetTimestamp() => Now;

    /// <summary>Every short write that only copies memory is made on its caller's thread, however busy the machine is.</summary>
    public static InlineWrites AllInlineWrites() => new(new StoppedClock());

    public static InlineWrites NoInlineWrites()
    {
        StoppedClock clock = new();
        InlineWrites writes = new(clock);
        Assert.True(writes.TryBegin(out long begun));
        clock.Now += 1_000_000;
        writes.End(begun);
        return writes;
    }
}
