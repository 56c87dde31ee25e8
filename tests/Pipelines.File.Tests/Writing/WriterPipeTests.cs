namespace FilePipelines.Tests;

/// <summary>Writing to a FIFO: its reader stalls, comes back, or goes away.</summary>
public sealed class WriterPipeTests : FileTests
{
    public WriterPipeTests() => ChildProcess.SkipUnlessLinux();

    [Fact]
    public async Task FlushAsync_ReaderOfTheFifoStalls_PausesWithoutAThreadAndLosesNothing()
    {
        string path = Fifo.Make(_folder);
        using SafeFileHandle readEnd = Fifo.OpenBothWays(path);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Open, PauseWriterThreshold = 200_000 });
        Assert.Throws<NotSupportedException>(() => FilePipeWriter.Create(path, new() { Mode = FileMode.Open, Offset = 1 }));
        const int Total = 1_000_000;
        Task writing = PatternFile.WriteAsync(writer, Total);
        long stalledAt = -1;
        await Eventually.TrueAsync(async () =>
        {
            stalledAt = writer.Position;
            await Task.Delay(50, _stop);
            return stalledAt >= 200_000 && writer.Position == stalledAt;
        });
        Assert.False(writing.IsCompleted);
        Assert.InRange(stalledAt, 200_000, 400_000);

        using FileStream source = new(readEnd, FileAccess.Read, 1);
        byte[] content = new byte[Total];
        await source.ReadExactlyAsync(content, _stop);
        await writing.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(Total, writer.Position);
        Assert.Equal(-1, Pattern.FirstDifference(content));
    }

    [Fact]
    public async Task FlushAsync_ReaderOfTheFifoIsGone_Throws()
    {
        string path = Fifo.Make(_folder);
        SafeFileHandle readEnd = Fifo.OpenBothWays(path);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Open, FlushGuarantee = FlushGuarantee.Written });
        await writer.WriteAsync(Pattern.Bytes(100), _stop);
        readEnd.Dispose();
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(100), _stop));
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
    }

    [Fact]
    public async Task FlushAsync_DurableToAFifo_HasNothingToSyncAndCompletes()
    {
        string path = Fifo.Make(_folder);
        using SafeFileHandle readEnd = Fifo.OpenBothWays(path);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Open, FlushGuarantee = FlushGuarantee.Durable });
        await writer.WriteAllAsync(Pattern.Bytes(100)).WaitAsync(Eventually.Limit, _stop);
        using FileStream source = new(readEnd, FileAccess.Read, 1);
        byte[] content = new byte[100];
        await source.ReadExactlyAsync(content, _stop);
        Assert.Equal(Pattern.Bytes(100), content);
    }

    [Theory]
    [InlineData(true, true, 1)]
    [InlineData(true, false, 1)]
    [InlineData(false, false, 8)]
    public async Task FlushAsync_ToAnEmptyFifo_IsOneCallByPathAndOneForEachPipeBufWithACallersHandle(
        bool isOurs, bool knowsWriteNoWait, int callsPerFlush)
    {
        // 32 KiB: half of what a pipe takes, in segments that are smaller than PIPE_BUF.
        const int Length = 32 * 1024;
        ScriptedCalls calls = new() { KnowsWriteNoWait = knowsWriteNoWait };
        string path = Fifo.Make(_folder);
        using FileStream source = new(Fifo.OpenBothWays(path), FileAccess.Read, 1);
        FilePipeWriterOptions options = new() { Mode = FileMode.Open, FlushGuarantee = FlushGuarantee.Written };
        FilePipeWriter writer = isOurs
            ? calls.Write(path, options)
            : calls.Write(File.OpenHandle(path, FileMode.Open, FileAccess.Write), new() { FlushGuarantee = FlushGuarantee.Written });
        byte[] content = new byte[Length];
        for (int flush = 0; flush < 16; flush++)
        {
            await writer.WriteAsync(Pattern.Bytes(Length, flush * Length), _stop);
            await source.ReadExactlyAsync(content, _stop);
            Assert.Equal(-1, Pattern.FirstDifference(content, flush * Length));
        }

        Assert.Equal(16 * callsPerFlush, calls.Writes);
        await writer.CompleteAsync();
    }

    [Fact]
    public async Task Create_OnACallersHandleOfAFifo_LeavesItBlocking()
    {
        string path = Fifo.Make(_folder);
        using SafeFileHandle handle = Fifo.OpenBothWays(path);
        FilePipeWriter writer = FilePipeWriter.Create(handle, new() { LeaveOpen = true });
        FilePipeReader reader = FilePipeReader.Create(handle, new() { LeaveOpen = true });

        // The open file description may be shared with whoever else has the pipe, another process among them.
        string flags = File.ReadAllLines($"/proc/self/fdinfo/{handle.DangerousGetHandle()}")
            .Single(line => line.StartsWith("flags:", StringComparison.Ordinal));
        Assert.Equal(0, Convert.ToInt32(flags["flags:".Length..].Trim(), 8) & Pipelines.File.IO.Libc.O_NONBLOCK);
        await writer.CompleteAsync();
        await reader.CompleteAsync();
    }
}
