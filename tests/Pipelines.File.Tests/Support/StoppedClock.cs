using Pipelines.File.Writing;

namespace FilePipelines.Tests;

/// <summary>A clock that goes only as a test says. Its timestamps are microseconds.</summary>
internal sealed class StoppedClock : TimeProvider
{
    public long Now { get; set; } = 1;

    public override long TimestampFrequency => 1_000_000;

    public override long GetTimestamp() => Now;

    /// <summary>Every short write that only copies memory is made on its caller's thread, however busy the machine is.</summary>
    public static FastWrites AllInlineWrites()
    {
        FastWrites writes = new(new StoppedClock());
        for (ulong volume = 0; volume < 4096; volume++)
        {
            writes.End(volume, writes.Begin(volume), 1);
        }

        return writes;
    }

    /// <summary>No write is: the clock goes on by a second whenever it is asked, so each has been slow.</summary>
    public static FastWrites NoInlineWrites() => new(new HastyClock());

    private sealed class HastyClock : TimeProvider
    {
        private long _now = 1;

        public override long TimestampFrequency => 1000;

        public override long GetTimestamp() => Interlocked.Add(ref _now, 1000);
    }
}
