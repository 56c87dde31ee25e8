namespace FilePipelines.Tests;

/// <summary>A writer that two threads use at once, or that is told of bytes that it has not given.</summary>
public sealed class WriterOverlapTests : FileTests
{
    [Fact]
    public async Task WriteAsync_TwoThreadsAtOnce_ThrowsAndDamagesNoLine()
    {
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { PauseWriterThreshold = 1L << 40, MinimumBufferSize = 1000 });
        using Barrier barrier = new(2);
        int refused = 0;
        List<string>[] written = [[], []];
        Thread[] threads = [.. Enumerable.Range(0, 2).Select(thread => new Thread(() =>
        {
            barrier.SignalAndWait();
            for (int i = 0; i < 50_000; i++)
            {
                string line = $"thread {thread} line {i}";
                try
                {
                    ValueTask<FlushResult> flush = writer.WriteAsync(Encoding.ASCII.GetBytes(line + "\n"));
                    Assert.True(flush.IsCompletedSuccessfully);
                    written[thread].Add(line);
                }
                catch (InvalidOperationException e)
                {
                    Assert.StartsWith("Another call of this writer is under way", e.Message, StringComparison.Ordinal);
                    Interlocked.Increment(ref refused);
                }
            }
        }))];
        Array.ForEach(threads, thread => thread.Start());
        Array.ForEach(threads, thread => thread.Join());
        await writer.CompleteAsync();

        // Those that were taken, whole, and those that were refused, not at all.
        string[] lines = await File.ReadAllLinesAsync(path, _stop);
        Assert.Equal(written[0].Concat(written[1]).Order(StringComparer.Ordinal), lines.Order(StringComparer.Ordinal));
        Assert.Equal(100_000, lines.Length + refused);
    }

    [Fact]
    public async Task AnyCall_WhileALargeWriteIsUnderWay_Throws()
    {
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = gate.Hold };
        string path = _folder.File("f");
        FilePipeWriter writer = calls.Write(path);
        byte[] data = Pattern.Bytes(5_000_000);
        Task<FlushResult> large = writer.WriteAsync(data, _stop).AsTask();
        Assert.False(large.IsCompleted);
        await AssertIsBusyAsync(writer);
        gate.Open();
        await large;
        await writer.WriteAllAsync(Pattern.Bytes(10, 5_000_000));
        Assert.Equal(Pattern.Bytes(5_000_010), File.ReadAllBytes(path));
    }

    /// <summary>Until the stream has read, it has the memory that another call would fill, too.</summary>
    [Fact]
    public async Task AnyCall_WhileAStreamIsCopied_Throws()
    {
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path);
        Pipe source = new();
        Task copy = source.Reader.AsStream().CopyToAsync(writer, _stop);
        Assert.False(copy.IsCompleted);
        await AssertIsBusyAsync(writer);
        await source.Writer.WriteAsync(Pattern.Bytes(1000), _stop);
        await source.Writer.CompleteAsync();
        await copy;
        await writer.WriteAllAsync(Pattern.Bytes(10, 1000));
        Assert.Equal(Pattern.Bytes(1010), File.ReadAllBytes(path));
    }

    /// <summary>The copy is the writer's one call, also while it waits for its source.</summary>
    [Fact]
    public async Task AnyCall_WhileAReaderIsCopied_Throws()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Windows has no FIFOs.");
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path);
        using Fifo fifo = Fifo.Create(_folder);
        await using FilePipeReader reader = FilePipeReader.Create(_folder.File("source", Pattern.Bytes(500)));
        await reader.CopyToAsync(writer, _stop);
        FilePipeReader slow = FilePipeReader.Create(fifo.Path);
        Task copy = slow.CopyToAsync(writer, _stop);
        Assert.False(copy.IsCompleted);
        await Assert.ThrowsAsync<InvalidOperationException>(() => reader.CopyToAsync(writer, _stop));
        await AssertIsBusyAsync(writer);
        fifo.Write(Pattern.Bytes(1000, 500));
        fifo.Dispose();
        await copy.WaitAsync(Eventually.Limit, _stop);
        await slow.CompleteAsync();
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(1500), File.ReadAllBytes(path));
    }

    [Fact]
    public async Task WriteAsync_WhatThrows_LeavesTheWriterUsable()
    {
        CheckedPool pool = new() { Limit = 0 };
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { Pool = pool });
        foreach (int size in new[] { 10, 200_000 })
        {
            pool.Limit = 0;
            await Assert.ThrowsAsync<InvalidOperationException>(async () => await writer.WriteAsync(new byte[size], _stop));
            pool.Limit = int.MaxValue;
            await writer.WriteAsync(new byte[size], _stop);
        }

        await writer.CompleteAsync();
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Written)]
    public async Task WriteAsync_PoolCompletesTheWriterWhileItCopies_IsRefusedAndTheWriteGoesOn(FlushGuarantee guarantee)
    {
        using CheckedPool pool = new();
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { Pool = pool, FlushGuarantee = guarantee });
        writer.Put(10, 0);
        Exception? refused = null;
        pool.OnSpan = () =>
        {
            pool.OnSpan = null;
            refused = Record.Exception(() => writer.Complete());
        };
        await writer.WriteAllAsync(Pattern.Bytes(100, 10));
        Assert.IsType<InvalidOperationException>(refused);
        Assert.Equal(Pattern.Bytes(110), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task FlushAsync_SeveralPending_AreServed()
    {
        // Many wait for one sync: that is no mistake.
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        List<Task> flushes = [];
        for (int i = 0; i < 20; i++)
        {
            flushes.Add(writer.WriteAsync(Pattern.Bytes(10, i * 10), _stop).AsTask());
        }

        await Task.WhenAll(flushes);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(200), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task Advance_WrongCount_ThrowsAndSaysWhichMistakeItIs()
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"));
        Assert.Contains(
            "0 that are left", Assert.Throws<ArgumentOutOfRangeException>(() => writer.Advance(1)).Message, StringComparison.Ordinal);
        Assert.Throws<ArgumentOutOfRangeException>(() => writer.GetMemory(-1));
        int room = writer.GetMemory().Length;
        Assert.Contains(
            "cannot go back", Assert.Throws<ArgumentOutOfRangeException>(() => writer.Advance(-1)).Message, StringComparison.Ordinal);
        Assert.Contains($"{room} that are left", Assert.Throws<ArgumentOutOfRangeException>(() => writer.Advance(room + 1)).Message,
            StringComparison.Ordinal);
        Assert.Equal(0, writer.UnflushedBytes);
        writer.Write("x"u8);
        await writer.CompleteAsync();
        Assert.Equal("x"u8.ToArray(), File.ReadAllBytes(_folder.File("f")));
    }

    /// <summary>Every call but Abort is refused, and changes nothing.</summary>
    private async Task AssertIsBusyAsync(FilePipeWriter writer)
    {
        Exception?[] refused =
        [
            await Record.ExceptionAsync(async () => await writer.WriteAsync(new byte[10], _stop)),
            await Record.ExceptionAsync(async () => await writer.WriteAsync(new byte[5_000_000], _stop)),
            await Record.ExceptionAsync(async () => await writer.FlushAsync(_stop)),
            await Record.ExceptionAsync(() => Stream.Null.CopyToAsync(writer, _stop)),
            Record.Exception(() => writer.GetMemory()),
            Record.Exception(() => writer.GetSpan()),
            Record.Exception(() => writer.Advance(0)),
            Record.Exception(() => writer.Complete()),
            Record.Exception(() => writer.Complete(new IOException("the source broke"))),
            await Record.ExceptionAsync(async () => await writer.CompleteAsync()),
            Record.Exception(writer.Dispose),
            await Record.ExceptionAsync(async () => await writer.DisposeAsync()),
        ];
        Assert.All(refused, static error => Assert.IsType<InvalidOperationException>(error));
        Assert.False(writer.OpenedFile.Handle.IsClosed);
    }
}
