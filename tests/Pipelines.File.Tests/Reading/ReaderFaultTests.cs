namespace FilePipelines.Tests;

/// <summary>What the call that does not wait is known to answer, and real errors.</summary>
public sealed class ReaderFaultTests : FileTests
{
    private const int Length = 100_000;

    private readonly string _path;

    public ReaderFaultTests()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        _path = _folder.File("f", Pattern.Bytes(Length));
    }

    [Theory]
    [InlineData(Libc.ENOSYS), InlineData(Libc.EOPNOTSUPP), InlineData(Libc.EPERM), InlineData(Libc.EINVAL)]
    public async Task ReadNoWait_IsNotSupported_IsAskedOnceForThisFileAndStillForTheNext(int errno)
    {
        ScriptedCalls calls = new() { OnReadNoWait = _ => -errno };
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(calls.Read(_path, new() { BufferSize = 1000 })));
        Assert.Equal(1, calls.ReadsNoWait);
        Assert.True(calls.Reads > 0);
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(calls.Read(_path)));
        Assert.Equal(2, calls.ReadsNoWait);
    }

    [Theory]
    [InlineData(false, 0), InlineData(true, 0), InlineData(true, 50_000)]
    public async Task ReadAtLeastAsync_FailsAfterSomeBytesCame_TheyComeWithTheNextReadAndTheErrorAfterThem(
        bool isHandedOver, long readAhead)
    {
        ScriptedCalls calls = new()
        {
            OnReadNoWait = call => isHandedOver || call > 3 ? -Libc.EAGAIN : 1000,
            OnRead = call => isHandedOver && call <= 3 ? 1000 : -Libc.EIO,
        };
        FilePipeReader reader = calls.Read(_path, new() { BufferSize = 1000, PauseReadAheadThreshold = readAhead });

        // The caller has looked at the first bytes, and wants more of them.
        ReadResult first = await reader.ReadAsync(_stop);
        reader.AdvanceTo(first.Buffer.Start, first.Buffer.End);
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAtLeastAsync(Length, _stop));
        ReadResult result = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(Pattern.Bytes(3000), result.Buffer.ToArray());
        reader.AdvanceTo(result.Buffer.End);
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(_stop));
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task ReadAsync_EagainFromThePlainCallOnAFileThatCanSeek_IsAnError()
    {
        // Only what cannot seek is waited for: a poller would call this file ready for ever.
        ScriptedCalls calls = new() { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = _ => -Libc.EAGAIN };
        FilePipeReader reader = calls.Read(_path);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        await Assert.ThrowsAsync<IOException>(() => read.WaitAsync(Eventually.Limit, _stop));
        await reader.CompleteAsync();
        Assert.True(reader.OpenedFile.Handle.IsClosed);
    }

    /// <summary>A C library may lack the call. A read that never ended would keep Complete from ending, too.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Read_CallThrows_IsTheErrorOfThisReadAndOfLaterOnes(bool isHandedOver)
    {
        Exception thrown = new EntryPointNotFoundException("preadv");
        ScriptedCalls calls = new() { OnReadNoWait = _ => isHandedOver ? -Libc.EAGAIN : throw thrown, OnRead = _ => throw thrown };
        FilePipeReader reader = calls.Read(_path);
        for (int i = 0; i < 2; i++)
        {
            Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
            Assert.Same(thrown, await Assert.ThrowsAsync<EntryPointNotFoundException>(() => read.WaitAsync(Eventually.Limit, _stop)));
        }

        await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.True(reader.OpenedFile.Handle.IsClosed);
    }

    [Theory]
    [InlineData("0 before the end"), InlineData("EIO that is not true"), InlineData("few bytes"), InlineData("EINTR"), InlineData("EAGAIN")]
    public async Task ReadNoWait_AnswersThisNowAndThen_EveryByteComesOnce(string answer)
    {
        ScriptedCalls calls = answer switch
        {
            "0 before the end" => new() { OnReadNoWait = call => call % 2 == 0 ? 0 : 9999 },
            "EIO that is not true" => new() { OnReadNoWait = call => call % 3 == 0 ? -Libc.EIO : 777 },
            "few bytes" => new() { OnReadNoWait = call => 1 + (call % 900) },
            "EINTR" => new() { OnReadNoWait = call => call % 2 == 0 ? -Libc.EINTR : 5000 },
            _ => new() { OnReadNoWait = call => call % 2 == 0 ? -Libc.EAGAIN : 4096, OnRead = call => call % 3 == 0 ? -Libc.EINTR : 1000 },
        };
        int bufferSize = answer == "few bytes" ? 300 : 4096;
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(calls.Read(_path, new() { BufferSize = bufferSize })));
        Assert.True(calls.Reads > 0 || answer is "few bytes" or "EINTR");
        Assert.True(answer != "EAGAIN" || calls.ReadsNoWait is >= 20 and <= 100);
    }

    [Theory]
    [InlineData(0), InlineData(50_000)]
    public async Task Read_Fails_ThrowsWithThePathAfterWhatCameBeforeAndAgainLater(long readAhead)
    {
        int calls = 0;
        ScriptedCalls scripted = new()
        {
            OnReadNoWait = _ => Interlocked.Increment(ref calls) <= 3 ? 10_000 : -Libc.EIO,
            OnRead = _ => Interlocked.Increment(ref calls) <= 3 ? 10_000 : -Libc.EIO,
        };
        FilePipeReader reader = scripted.Read(_path, new() { PauseReadAheadThreshold = readAhead });
        long index = 0;
        IOException e = await Assert.ThrowsAsync<IOException>(async () =>
        {
            while (true)
            {
                ReadResult result = await reader.ReadAsync(_stop);
                index += result.Buffer.Length;
                reader.AdvanceTo(result.Buffer.End);
            }
        });
        Assert.Equal(30_000, index);
        Assert.Contains(_path, e.Message, StringComparison.Ordinal);
        Assert.Equal(Libc.EIO, e.HResult);
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(_stop));
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAtLeastAsync(10, _stop));
        await Assert.ThrowsAsync<IOException>(() => reader.CopyToAsync(Stream.Null, _stop));
        await reader.CompleteAsync();
        Assert.True(reader.OpenedFile.Handle.IsClosed);
    }

    [Theory]
    [InlineData(false, 0), InlineData(true, 0), InlineData(false, 1000), InlineData(true, 1000)]
    public async Task Read_HandleIsClosedUnderneath_ThrowsAndGivesTheMemoryBack(bool copies, long readAhead)
    {
        CheckedPool pool = new();
        SafeFileHandle handle = File.OpenHandle(_folder.File("larger", Pattern.Bytes(1_000_000)));
        FilePipeReader reader = FilePipeReader.Create(handle, new() { Pool = pool, PauseReadAheadThreshold = readAhead });
        reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
        handle.Dispose();
        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 0));
        await Assert.ThrowsAsync<ObjectDisposedException>(async () =>
        {
            while (true)
            {
                if (copies)
                {
                    await reader.CopyToAsync(pipe.Writer, _stop);
                }

                reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
            }
        });
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await reader.ReadAsync(_stop));
        await reader.CompleteAsync();
        pool.AssertReturned();
    }

    [Fact]
    public async Task Read_HandleOfAFifoIsClosedUnderneath_Throws()
    {
        using Fifo fifo = Fifo.Create(_folder);
        SafeFileHandle handle = File.OpenHandle(fifo.Path);
        FilePipeReader reader = FilePipeReader.Create(handle);
        handle.Dispose();
        await Assert.ThrowsAsync<ObjectDisposedException>(() => reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop));
        await reader.CompleteAsync();
    }
}
