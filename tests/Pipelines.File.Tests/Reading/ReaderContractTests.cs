using System.IO.Pipes;
using Pipelines.File.Memory;
using Pipelines.File.Reading;

namespace FilePipelines.Tests;

/// <summary>Positions, completion, read-ahead, the memory that a read takes, and what is counted.</summary>
public sealed class ReaderContractTests : FileTests
{
    private const long PoolLimit = 16 * 1024 * 1024;

    [Fact]
    public async Task AdvanceTo_ForeignPosition_ThrowsAndChangesNothing()
    {
        string path = _folder.File("f", Pattern.Bytes(10_000));
        FilePipeReader reader = FilePipeReader.Create(path, new() { BufferSize = 1000 });
        FilePipeReader other = FilePipeReader.Create(path, new() { BufferSize = 1000 });
        ReadResult result = await reader.ReadAsync(_stop);
        ReadResult foreign = await other.ReadAsync(_stop);
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(foreign.Buffer.End));
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(result.Buffer.Start, foreign.Buffer.End));
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(ReadOnlySequence<byte>.Empty.End));
        Assert.Equal(0, reader.Position);
        SequencePosition early = result.Buffer.GetPosition(1500);
        reader.AdvanceTo(result.Buffer.GetPosition(5500), result.Buffer.End);
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(early));
        Assert.Equal(5500, reader.Position);
        result = await reader.ReadAsync(_stop);
        Assert.Equal(-1, Pattern.FirstDifference(result.Buffer.ToArray(), 5500));
        await reader.CompleteAsync();
        await other.CompleteAsync();
    }

    [Fact]
    public async Task UseAfterComplete_Throws()
    {
        SafeFileHandle handle = File.OpenHandle(_folder.File("f", Pattern.Bytes(10)));
        FilePipeReader reader = FilePipeReader.Create(handle);
        ReadResult result = await reader.ReadAsync(_stop);
        await reader.CompleteAsync();
        reader.Complete();
        Assert.True(handle.IsClosed);
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(result.Buffer.End));
        Assert.Throws<InvalidOperationException>(() => reader.TryRead(out _));
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await reader.ReadAsync(_stop));
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await reader.ReadAtLeastAsync(1, _stop));
        await Assert.ThrowsAsync<InvalidOperationException>(() => reader.CopyToAsync(Stream.Null, _stop));
        reader.CancelPendingRead();
    }

    [Theory]
    [InlineData(0), InlineData(50_000)]
    public async Task Position_AfterComplete_StaysAtWhatWasConsumed(long readAhead)
    {
        FilePipeReader reader = FilePipeReader.Create(
            _folder.File("f", Pattern.Bytes(300_000)), new() { Offset = 10, PauseReadAheadThreshold = readAhead });
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.GetPosition(100));
        await reader.CompleteAsync();
        Assert.Equal(110, reader.Position);
        await Eventually.TrueAsync(() => reader.OpenedFile.Handle.IsClosed);
        Assert.Equal(110, reader.Position);
    }

    [Fact]
    public async Task LeaveOpen_LeavesTheHandleOpen()
    {
        using SafeFileHandle handle = File.OpenHandle(_folder.File("f", Pattern.Bytes(10)));
        for (int i = 0; i < 3; i++)
        {
            FilePipeReader reader = FilePipeReader.Create(handle, new() { LeaveOpen = true, Offset = i });
            Assert.Equal(10 - i, (await reader.ReadAsync(_stop)).Buffer.Length);
            await reader.CompleteAsync();
        }

        Assert.False(handle.IsClosed);
    }

    [Fact]
    public async Task ReadAhead_Paused_ResumesAtTheResumeThreshold()
    {
        ScriptedCalls calls = new() { OnReadNoWait = _ => 10_000, OnRead = _ => 10_000 };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(1_000_000)),
            new() { BufferSize = 1000, PauseReadAheadThreshold = 100_000, ResumeReadAheadThreshold = 20_000 });
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.Start);
        await Eventually.TrueAsync(() => Peek() == 100_000);
        int reads = calls.Reads;
        Assert.True(reader.TryRead(out result));
        reader.AdvanceTo(result.Buffer.GetPosition(79_999));
        await Task.Delay(50, _stop);
        Assert.Equal(20_001, Peek());
        Assert.Equal(reads, calls.Reads);
        Assert.True(reader.TryRead(out result));
        reader.AdvanceTo(result.Buffer.GetPosition(1));
        await Eventually.TrueAsync(() => Peek() == 100_000);
        await reader.CompleteAsync();

        long Peek()
        {
            Assert.True(reader.TryRead(out ReadResult all));
            reader.AdvanceTo(all.Buffer.Start);
            return all.Buffer.Length;
        }
    }

    [Fact]
    public async Task ReadAsync_WithReadAhead_ContinuationThatBlocksDoesNotHoldUpTheReadingAhead()
    {
        ScriptedCalls calls =
            new() { OnReadNoWait = _ => -Pipelines.File.IO.Libc.EAGAIN, OnRead = call => call == 1 ? Slow() ?? 1000 : 1000 };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(100_000)), new() { PauseReadAheadThreshold = 50_000 });

        // Without the context of the test runner, which would take the continuation elsewhere.
        await Task.Run(
            async () =>
            {
                ReadResult result = await reader.ReadAsync(_stop);
                Assert.True(SpinWait.SpinUntil(() => calls.Reads >= 10, Eventually.Limit), $"{calls.Reads} reads");
                reader.AdvanceTo(result.Buffer.End);
            },
            _stop);
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(0, false), InlineData(0, true), InlineData(1, false), InlineData(200_000, true)]
    public async Task Pool_IsEmptyForAWhile_ThrowsAtTheReadAndLosesNothing(long readAhead, bool waits)
    {
        CheckedPool pool = new() { Limit = 200 };
        ScriptedCalls calls = new() { OnReadNoWait = _ => waits ? -Pipelines.File.IO.Libc.EAGAIN : null };
        FilePipeReader reader = calls.Read(
            _folder.File("f", Pattern.Bytes(300_000)), new() { BufferSize = 500, Pool = pool, PauseReadAheadThreshold = readAhead });
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await reader.ReadAtLeastAsync(300_000, _stop));
        pool.Limit = 1000;
        ReadResult result = await reader.ReadAtLeastAsync(300_000, _stop);
        Assert.Equal(Pattern.Bytes(300_000), result.Buffer.ToArray());
        reader.AdvanceTo(result.Buffer.End);
        await reader.CompleteAsync();
        pool.AssertReturned();
    }

    [Theory]
    [InlineData(1)]
    [InlineData(300)]
    [InlineData(SegmentPool.MaxSize)]
    [InlineData(SegmentPool.MaxSize + 1)]
    public void SegmentPool_GivesTheSizeAskedForAndKeepsNoMoreThanItsLimit(int size)
    {
        SegmentPool pool = new(PoolLimit);
        List<FileSegment> segments = [.. Enumerable.Range(0, 40).Select(_ => pool.Rent(size))];
        Assert.All(segments, s => Assert.Equal(size, s.Capacity));
        Assert.All(segments, AssertAligned);
        Assert.Equal(40, segments.Distinct().Count());
        segments.ForEach(s => Assert.Null(pool.Return(s)));
        Assert.InRange(pool.RetainedBytes, size <= SegmentPool.MaxSize ? Math.Min(size, 256) : 0, PoolLimit);
        if (size <= SegmentPool.MaxSize)
        {
            Assert.Contains(pool.Rent(size), segments);
        }
    }

    private static unsafe void AssertAligned(FileSegment segment)
    {
        using System.Buffers.MemoryHandle memory = segment.Buffer.Pin();
        Assert.Equal((nint)memory.Pointer, segment.Address);
        Assert.Equal(0, segment.Address % FileSegment.Alignment);
    }

    [Fact]
    public async Task Meter_CountsInlineReadsHandOversBytesAndFallbacks()
    {
        using Counters counters = new();
        string path = _folder.File("f", Pattern.Bytes(100_000));
        ScriptedCalls calls = new() { OnReadNoWait = call => call == 4 ? -123 : 30_000 };
        FilePipeReader reader = calls.Read(path);
        await reader.CopyToAsync(Stream.Null, _stop);
        await reader.CompleteAsync();

        // Other tests may be reading, too.
        Assert.True(counters["reads.inline"] >= 3);
        Assert.True(counters["reads.handed_over"] >= 1);
        Assert.True(counters["bytes_read"] >= 100_000);
        Assert.Contains("preadv2 123", counters.Fallbacks);
    }

    [Fact]
    public async Task Create_FileInThePageCache_AllocatesFourSmallObjects()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Environment.Is64BitProcess, "It counts the objects of the Linux back end.");
        string path = _folder.File("f", Pattern.Bytes(4096));
        long least = long.MaxValue;
        foreach (int round in Warm.Rounds(100, () => least <= 384))
        {
            // The pools are full after the first, and what the runtime allocates for itself now and then is not in all of them.
            long before = GC.GetAllocatedBytesForCurrentThread();
            FilePipeReader reader = FilePipeReader.Create(path);
            ValueTask<ReadResult> read = reader.ReadAsync(_stop);
            Assert.SkipUnless(read.IsCompletedSuccessfully, "The file system does not know RWF_NOWAIT.");
            reader.AdvanceTo((await read).Buffer.End);
            Assert.True((await reader.ReadAsync(_stop)).IsCompleted);
            reader.Complete();
            least = Math.Min(least, GC.GetAllocatedBytesForCurrentThread() - before);
        }

        Assert.InRange(least, 1, 384);
    }

    [Fact]
    public async Task PipeReaderCreate_TheBclsFactory_MakesAFilePipeReader()
    {
        string path = _folder.File("f", Pattern.Bytes(10));
        PipeReader reader = PipeReader.Create(path, new FilePipeReaderOptions { BufferSize = 100 });
        Assert.IsType<FilePipeReader>(reader);
        Assert.Equal(10, (await reader.ReadAsync(_stop)).Buffer.Length);
        await reader.CompleteAsync();
    }

    /// <summary>Slow enough for the caller to be waiting when the read ends.</summary>
    private static long? Slow()
    {
        Thread.Sleep(50);
        return null;
    }
}
