namespace FilePipelines.Tests;

/// <summary>A long write, which is copied in pieces of 1 MiB with a flush after each, and what others do meanwhile.</summary>
public sealed class WriterLongWriteTests : FileTests
{
    private const int Length = 300_000;
    private const int Piece = 1024 * 1024;

    public WriterLongWriteTests() => Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");

    [Theory]
    [InlineData("token"), InlineData("CancelPendingFlush"), InlineData("Abort")]
    public async Task WriteAsync_CanceledBetweenTwoPieces_EndsAtOnceAndKeepsWhatWasCopied(string how)
    {
        using Gate gate = new();
        using CancellationTokenSource token = new();
        ScriptedCalls calls = new() { OnWrite = gate.Hold };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        byte[] source = Pattern.Bytes((3 * Piece) - 7);
        Task<FlushResult> write = writer.WriteAsync(source, token.Token).AsTask();
        await Eventually.TrueAsync(() => calls.Writes == 1);
        Assert.False(write.IsCompleted);
        if (how == "CancelPendingFlush")
        {
            writer.CancelPendingFlush();
            Assert.True((await write.WaitAsync(Eventually.Limit, _stop)).IsCanceled);
        }
        else
        {
            await (how == "Abort" ? Task.Run(writer.Abort, _stop) : token.CancelAsync());
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => write.WaitAsync(Eventually.Limit, _stop));
        }

        // The system has a copy, so the caller's memory is free.
        byte[] expected = source[..Piece];
        Array.Clear(source);
        gate.Open();
        if (how != "Abort")
        {
            Assert.Equal(Piece, writer.Position);
        }

        await writer.CompleteAsync();
        byte[] content = File.ReadAllBytes(_folder.File("f"));
        Assert.True(expected.AsSpan(0, content.Length).SequenceEqual(content));
        Assert.True(how == "Abort" || content.Length == Piece);
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Durable)]
    public async Task Complete_BetweenTwoPieces_ThrowsAndTheWriteGoesOn(FlushGuarantee guarantee)
    {
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = gate.Hold };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = guarantee });
        Task<FlushResult> write = writer.WriteAsync(Pattern.Bytes(3 * Piece), _stop).AsTask();
        await Eventually.TrueAsync(() => calls.Writes == 1);
        Exception? refused = await Record.ExceptionAsync(async () => await writer.CompleteAsync());
        gate.Open();
        await write.WaitAsync(Eventually.Limit, _stop);
        await writer.CompleteAsync();
        Assert.IsType<InvalidOperationException>(refused);
        Assert.True(Pattern.Bytes(3 * Piece).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
        Assert.Equal(3 * Piece, writer.Position);
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Written), InlineData(FlushGuarantee.Durable)]
    public async Task WriteAsync_OfSeveralPieces_HoldsItsGuaranteeWhenItCompletes(FlushGuarantee guarantee)
    {
        ScriptedCalls calls = new();
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = guarantee });
        await writer.WriteAsync(Pattern.Bytes((3 * Piece) + 5), _stop);
        Assert.Equal(guarantee == FlushGuarantee.Durable ? 1 : 0, calls.Syncs);
        if (guarantee != FlushGuarantee.WriteBehind)
        {
            Assert.Equal((3 * Piece) + 5, new FileInfo(_folder.File("f")).Length);
        }

        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes((3 * Piece) + 5).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    [Fact]
    public async Task CopyToAsync_AnotherStreamFollowsWhileTheFlushIsPending_EachPositionIsItsOwn()
    {
        using Gate gate = new();
        ScriptedCalls calls = new() { OnSync = gate.Hold };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        using PooledMemoryStream first = new();
        using PooledMemoryStream second = new();
        await first.WriteAsync(Pattern.Bytes(1000), _stop);
        await second.WriteAsync(Pattern.Bytes(500, 1000), _stop);
        first.Position = second.Position = 0;
        Task one = first.CopyToAsync(writer, _stop);
        await Eventually.TrueAsync(() => calls.Syncs == 1);
        Task two = second.CopyToAsync(writer, _stop);
        gate.Open();
        await Task.WhenAll(one, two).WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(1000, first.Position);
        Assert.Equal(500, second.Position);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(1500), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task CopyToAsync_StreamIsDisposedOfMeanwhile_WritesItsBytesAndNobodyElses()
    {
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = gate.Hold };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        PooledMemoryStream stream = new();
        await stream.WriteAsync(Pattern.Bytes(Length), _stop);
        stream.Position = 0;
        Task copy = stream.CopyToAsync(writer, _stop);
        await Eventually.TrueAsync(() => calls.Writes == 1);
        stream.Dispose();
        using (PooledMemoryStream other = new())
        {
            // Whoever gets the memory next.
            await other.WriteAsync(new byte[2 * Length], _stop);
        }

        gate.Open();
        await copy.WaitAsync(Eventually.Limit, _stop);
        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes(Length).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    [Theory]
    [InlineData(FileMode.Append, 300), InlineData(FileMode.Create, 300)]
    public async Task WriteAsync_BetweenSmallOnes_KeepsTheOrder(FileMode mode, int small)
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { Mode = mode, MinimumBufferSize = 100 });
        int index = 0;
        for (int i = 0; i < 20; i++)
        {
            int length = i % 2 == 0 ? small : Length;
            if (i % 3 == 0)
            {
                // Taken, and not flushed.
                writer.Put(77, index);
                index += 77;
            }

            if (i % 4 == 0)
            {
                writer.GetMemory(50);
            }

            await writer.WriteAsync(Pattern.Bytes(length, index), _stop);
            index += length;
            Assert.Equal(mode == FileMode.Append && length == small ? writer.Position : index, writer.Position);
        }

        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes(index).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }
}
