using Pipelines.File.Memory;

namespace FilePipelines.Tests;

/// <summary>What the pool keeps, and what it lets go of.</summary>
public sealed class SegmentPoolTests
{
    private const int MiB = 1024 * 1024;
    private static readonly long s_later = (long)TimeSpan.FromHours(1).TotalMilliseconds;

    /// <summary>What has to be given back is given back where memory is out, too: flushes and completions come after it.</summary>
    [Fact]
    public void Return_MoreSegmentsThanEver_AllocatesNothing()
        => Assert.Equal(0, Warm.Least(0, static () =>
        {
            SegmentPool pool = new(MiB);
            FileSegment? list = null;
            for (int i = 0; i < 1000; i++)
            {
                FileSegment segment = pool.Rent(SegmentPool.MinSize);
                segment.NextSegment = list;
                list = segment;
            }

            long before = GC.GetAllocatedBytesForCurrentThread();
            _ = pool.Return(list);
            return GC.GetAllocatedBytesForCurrentThread() - before;
        }));

    [Fact]
    public void Trim_MemoryThatNobodyNeeded_IsLetGoOf()
    {
        SegmentPool pool = new(100 * MiB);
        UseAtOnce(pool, 20);
        long now = Environment.TickCount64 + s_later;
        pool.Trim(now, isMemoryShort: false);
        Assert.Equal(20 * MiB, pool.RetainedBytes);

        // Five are used in the next interval, so fifteen lay idle in it.
        UseAtOnce(pool, 5);
        pool.Trim(now += s_later, isMemoryShort: false);
        Assert.Equal(5 * MiB, pool.RetainedBytes);
        pool.Trim(now + s_later, isMemoryShort: false);
        Assert.Equal(0, pool.RetainedBytes);
    }

    [Fact]
    public void Trim_MemoryThatIsUsedAgainAndAgain_IsKept()
    {
        SegmentPool pool = new(200 * MiB);
        long now = Environment.TickCount64;
        for (int i = 0; i < 5; i++)
        {
            UseAtOnce(pool, 100);
            pool.Trim(now += s_later, isMemoryShort: false);
            Assert.Equal(100 * MiB, pool.RetainedBytes);
        }
    }

    [Fact]
    public void Trim_BeforeTheIdleTimeIsOver_LetsGoOfNothing()
    {
        SegmentPool pool = new(100 * MiB);
        UseAtOnce(pool, 10);
        long now = Environment.TickCount64 + s_later;
        pool.Trim(now, isMemoryShort: false);
        for (int i = 0; i < 5; i++)
        {
            pool.Trim(now += (long)pool.IdleTime.TotalMilliseconds / 6, isMemoryShort: false);
        }

        Assert.Equal(10 * MiB, pool.RetainedBytes);
    }

    [Fact]
    public void Trim_MemoryIsShort_LetsGoOfEverything()
    {
        SegmentPool pool = new(100 * MiB);
        UseAtOnce(pool, 10);
        pool.Return(pool.Rent(300));
        pool.Trim(Environment.TickCount64, isMemoryShort: true);
        Assert.Equal(0, pool.RetainedBytes);
        UseAtOnce(pool, 10);
        Assert.Equal(10 * MiB, pool.RetainedBytes);
    }

    [Fact]
    public void Trim_PositionInASegmentThatIsLetGoOf_KeepsNoOther()
    {
        SegmentPool pool = new(100 * MiB);
        FileSegment[] segments = UseAtOnce(pool, 3);
        pool.Trim(Environment.TickCount64, isMemoryShort: true);
        Assert.All(segments, segment => Assert.Null(segment.Next));
    }

    [Fact]
    public void MaxRetainedBytes_Lowered_HasAnEffectAtOnce()
    {
        SegmentPool pool = new(100 * MiB);
        UseAtOnce(pool, 20);
        pool.MaxRetainedBytes = 3 * MiB;
        Assert.Equal(3 * MiB, pool.RetainedBytes);
        UseAtOnce(pool, 20);
        Assert.InRange(pool.RetainedBytes, MiB, 3 * MiB);
        pool.MaxRetainedBytes = 0;
        Assert.Equal(0, pool.RetainedBytes);
        UseAtOnce(pool, 2);
        Assert.Equal(0, pool.RetainedBytes);
        pool.MaxRetainedBytes = 100 * MiB;
        UseAtOnce(pool, 20);
        Assert.Equal(20 * MiB, pool.RetainedBytes);
    }

    [Fact]
    public void MaxRetainedBytes_OfThePublicClass_RefusesNegativeOnes()
    {
        Assert.Throws<ArgumentOutOfRangeException>(() => FilePipeMemory.MaxRetainedBytes = -1);
        Assert.InRange(FilePipeMemory.MaxRetainedBytes, MiB, 1L << 30);
    }

    private static FileSegment[] UseAtOnce(SegmentPool pool, int count)
    {
        FileSegment[] segments = [.. Enumerable.Range(0, count).Select(_ => pool.Rent(MiB))];
        Assert.Equal(count, segments.Distinct().Count());
        Array.ForEach(segments, segment => Assert.Null(pool.Return(segment)));
        return segments;
    }
}
