using System.Diagnostics.CodeAnalysis;
using Pipelines.File.Memory;

namespace FilePipelines.Tests;

/// <summary>What <see cref="PooledMemoryStream"/> and the shared pool take and give back, counted over the whole process.</summary>
[Collection("whole process")]
public sealed class PooledMemoryTests : IDisposable
{
    private const int MiB = 1024 * 1024;
    private const int Rounds = 6;

    private readonly long _limit = FilePipeMemory.MaxRetainedBytes;

    public PooledMemoryTests() => EmptyThePool();

    public void Dispose() => EmptyThePool();

    // What other tests have filled the pool with, or these, is nothing for those that come after.
    private void EmptyThePool()
    {
        FilePipeMemory.MaxRetainedBytes = 0;
        FilePipeMemory.MaxRetainedBytes = _limit;
    }

    [Theory]
    [InlineData(10), InlineData(100), InlineData(100_000), InlineData(10_000_000)]
    public void Stream_Warm_AllocatesAtMost300BytesBesideTheResult(int length)
    {
        byte[] data = Pattern.Bytes(length);
        Assert.InRange(Least(Run, enough: 300), 1, 300);

        void Run()
        {
            using PooledMemoryStream stream = new();
            for (int done = 0; done < length; done += 1000)
            {
                stream.Write(data, done, Math.Min(1000, length - done));
            }

            stream.Position = length / 2;
            stream.WriteInt64BigEndian(1);
            stream.Position = 0;
            Span<byte> read = stackalloc byte[5000];
            while (stream.Read(read) > 0)
            {
            }

            if (stream.Sequence.Length < length)
            {
                throw new InvalidOperationException();
            }
        }
    }

    [Fact]
    [SuppressMessage("Reliability", "CA2012:Use ValueTasks correctly",
        Justification = "They are complete; an await would count its own memory.")]
    [SuppressMessage("Performance", "CA1835:Prefer the 'Memory'-based overloads", Justification = "They are measured, too.")]
    public void AsyncMembers_Warm_AllocateNothingAndAreComplete()
    {
        using PooledMemoryStream stream = new();
        using PooledMemoryStream destination = new();
        byte[] data = Pattern.Bytes(1000);
        Assert.Equal(0, Least(Run));

        void Run()
        {
            stream.SetLength(0);
            bool isComplete = true;
            for (int i = 0; i < 100; i++)
            {
                isComplete &= stream.WriteAsync(data.AsMemory()).IsCompletedSuccessfully;
                isComplete &= stream.WriteAsync(data, 0, data.Length).IsCompletedSuccessfully;
            }

            stream.Position = 0;
            for (int i = 0; i < 50; i++)
            {
                isComplete &= stream.ReadAsync(data.AsMemory()).Result == data.Length;
                isComplete &= stream.ReadAsync(data, 0, data.Length).Result == data.Length;
            }

            isComplete &= stream.FlushAsync().IsCompletedSuccessfully;
            destination.SetLength(0);
            isComplete &= stream.CopyToAsync(destination).IsCompletedSuccessfully && destination.Length == 100 * data.Length;
            stream.Position = 0;
            isComplete &= stream.CopyToAsync(Stream.Null).IsCompletedSuccessfully;
            if (!isComplete)
            {
                throw new InvalidOperationException();
            }
        }
    }

    [Fact]
    public void Dispose_Twice_GivesTheMemoryBackOnce()
    {
        PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(100_000));
        stream.Dispose();
        stream.Dispose();

        // Were it given back twice, these two would get the same.
        using PooledMemoryStream first = new();
        using PooledMemoryStream second = new();
        for (int i = 0; i < 20; i++)
        {
            first.Write(Pattern.Bytes(10_000, i * 10_000));
            second.Write(Pattern.Bytes(10_000, 7 + (i * 10_000)));
        }

        Assert.Equal(-1, Pattern.FirstDifference(first.ToArray()));
        Assert.Equal(-1, Pattern.FirstDifference(second.ToArray(), 7));
    }

    [Fact]
    public void Pool_HundredMebibytesAgainAndAgain_AreKeptAndCounted()
    {
        using Counters counters = new();
        Fill(100 * MiB);
        long allocated = counters["pool.allocated"];
        Assert.InRange(FilePipeMemory.RetainedBytes, 100 * MiB, FilePipeMemory.MaxRetainedBytes + MiB);
        Assert.Equal(FilePipeMemory.RetainedBytes, counters["pool.retained"]);
        for (int i = 0; i < 3; i++)
        {
            Fill(100 * MiB);
        }

        Assert.Equal(allocated, counters["pool.allocated"]);
        long released = counters["pool.released"];
        FilePipeMemory.MaxRetainedBytes = 10 * MiB;
        Assert.InRange(counters["pool.released"] - released, 85 * MiB, 200 * MiB);
        Assert.InRange(counters["pool.retained"], 0, 11 * MiB);
        FilePipeMemory.MaxRetainedBytes = 0;
        Fill(MiB);
        Assert.Equal(0, FilePipeMemory.RetainedBytes);
    }

    [Fact]
    public void Pool_FullCollectionsWhileItLiesIdle_MakeItLetGo()
    {
        TimeSpan idleTime = SegmentPool.Shared.IdleTime;
        try
        {
            Fill(50 * MiB);
            Assert.True(FilePipeMemory.RetainedBytes >= 50 * MiB);
            SegmentPool.Shared.IdleTime = TimeSpan.Zero;
            for (int i = 0; i < 20 && FilePipeMemory.RetainedBytes > 0; i++)
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
            }

            Assert.Equal(0, FilePipeMemory.RetainedBytes);
        }
        finally
        {
            SegmentPool.Shared.IdleTime = idleTime;
        }
    }

    [Fact]
    [Trait("Category", StressTime.Category)]
    public void Stream_LongerThanTwoGibibytes_ReadsWritesAndSeeks()
    {
        const long Length = (1L << 31) + (3 * MiB);
        FilePipeMemory.MaxRetainedBytes = 0;
        using PooledMemoryStream stream = new();
        byte[] block = Pattern.Bytes(16 * MiB);
        while (stream.Length < Length)
        {
            stream.Write(block, 0, (int)Math.Min(block.Length, Length - stream.Length));
        }

        Assert.Equal(Length, stream.Length);
        Assert.Equal(Length, stream.Position);
        Assert.Equal(Length, stream.Sequence.Length);
        Assert.Throws<IOException>(stream.ToArray);
        foreach (long place in (long[])[0, int.MaxValue - 1L, int.MaxValue, 1L << 31, Length - 1])
        {
            Assert.Equal(place, stream.Seek(place, SeekOrigin.Begin));
            Assert.Equal(Pattern.At(place % block.Length), stream.ReadByte());
            Assert.Equal(Pattern.At(place % block.Length), stream.Sequence.Slice(place, 1).FirstSpan[0]);
        }

        stream.Position = (1L << 31) - 4;
        stream.Write("over the line"u8);
        stream.Position = (1L << 31) - 4;
        byte[] read = new byte[13];
        stream.ReadExactly(read);
        Assert.Equal("over the line"u8, read);
        stream.SetLength((1L << 31) + 1);
        Assert.Equal((1L << 31) + 1, stream.Length);
    }

    [Fact]
    public async Task ReaderAndWriter_PoolThatReusesItsMemory_AllocateNothingForAPiece()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "A call takes one piece there, and the test counts what 256 calls allocate.");
        const int Pieces = 256;
        using TempFolder folder = new();
        using ReusingPool pool = new();
        string path = folder.File("f", Pattern.Bytes(Pieces * ReusingPool.Size));
        string copy = folder.File("copy");

        // The objects of a file are fewer.
        const int Enough = 4096;
        Assert.InRange(Least(Read, Enough), 1, Enough);
        Assert.InRange(Least(Write, Enough), 1, Enough);
        Assert.Equal(Pattern.Bytes(Pieces * ReusingPool.Size), await File.ReadAllBytesAsync(copy, TestContext.Current.CancellationToken));

        void Read()
        {
            FilePipeReader reader = FilePipeReader.Create(path, new() { Pool = pool, BufferSize = ReusingPool.Size });
            for (bool isCompleted = false; !isCompleted;)
            {
                ValueTask<ReadResult> reading = reader.ReadAsync(TestContext.Current.CancellationToken);
                ReadResult result = reading.IsCompleted ? reading.GetAwaiter().GetResult() : reading.AsTask().GetAwaiter().GetResult();
                isCompleted = result.IsCompleted;
                reader.AdvanceTo(result.Buffer.End);
            }

            reader.Complete();
        }

        void Write()
        {
            FilePipeWriter writer = FilePipeWriter.Create(copy, new() { Pool = pool, MinimumBufferSize = ReusingPool.Size });
            for (int i = 0; i < Pieces; i++)
            {
                Pattern.Fill(writer.GetSpan(ReusingPool.Size)[..ReusingPool.Size], i * ReusingPool.Size);
                writer.Advance(ReusingPool.Size);
            }

            writer.Complete();
        }
    }

    private static void Fill(int length)
    {
        FileSegment[] segments = [.. Enumerable.Range(0, length / MiB).Select(_ => SegmentPool.Shared.Rent(MiB))];
        foreach (FileSegment segment in segments)
        {
            _ = SegmentPool.Shared.Return(segment);
        }
    }

    /// <summary>
    /// What a run allocates on this thread, at the least: what another test's collections take from the pool meanwhile comes on top.
    /// </summary>
    private static long Least(Action run, long enough = 0)
    {
        run();
        run();
        long least = long.MaxValue;
        foreach (int round in Warm.Rounds(Rounds, () => least <= enough))
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            run();
            least = Math.Min(least, GC.GetAllocatedBytesForCurrentThread() - before);
        }

        return least;
    }

    /// <summary>A caller's pool that allocates nothing once it is warm.</summary>
    private sealed class ReusingPool : MemoryPool<byte>
    {
        public const int Size = 4096;

        private readonly Stack<Piece> _idle = [];

        public override int MaxBufferSize => Size;

        public override IMemoryOwner<byte> Rent(int minBufferSize = -1)
        {
            lock (_idle)
            {
                return _idle.TryPop(out Piece? piece) ? piece : new Piece(this);
            }
        }

        protected override void Dispose(bool disposing)
        {
        }

        private sealed class Piece(ReusingPool pool) : IMemoryOwner<byte>
        {
            public Memory<byte> Memory { get; } = GC.AllocateArray<byte>(Size, pinned: true);

            public void Dispose()
            {
                lock (pool._idle)
                {
                    pool._idle.Push(this);
                }
            }
        }
    }
}
