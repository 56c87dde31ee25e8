namespace FilePipelines.Tests;

/// <summary>FilePipeReader.CopyToAsync, above all into a FilePipeWriter.</summary>
public sealed class CopyTests : FileTests
{
    [Theory]
    [InlineData(0), InlineData(1), InlineData(100_000), InlineData(1024 * 1024), InlineData(1024 * 1024 + 1), InlineData(40_000_000)]
    public async Task CopyToAsync_FileToFile_CopiesItAndMovesBothPositions(int length)
    {
        string source = _folder.File("source", Pattern.Bytes(length));
        FilePipeReader reader = FilePipeReader.Create(source);
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("destination"));
        await reader.CopyToAsync(writer, _stop);
        Assert.Equal(length, reader.Position);
        Assert.Equal(length, writer.Position);
        Assert.True((await reader.ReadAsync(_stop)).IsCompleted);
        await reader.CompleteAsync();
        await writer.CompleteAsync();
        Assert.True(File.ReadAllBytes(source).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("destination"))));
    }

    [Fact]
    public async Task CopyToAsync_WithBytesBufferedOnBothSides_KeepsTheirOrder()
    {
        string source = _folder.File("source", Pattern.Bytes(300_000, 10));
        FilePipeReader reader = FilePipeReader.Create(source, new() { BufferSize = 4096, Offset = 5, Length = 200_000 });
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("destination"));
        writer.Put(15);
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.Start, result.Buffer.End);
        await reader.CopyToAsync(writer, _stop);
        Assert.Equal(200_005, reader.Position);
        Assert.Equal(200_015, writer.Position);
        await writer.WriteAsync(Pattern.Bytes(100, 200_015), _stop);
        await reader.CompleteAsync();
        await writer.CompleteAsync();
        Assert.Equal(-1, Pattern.FirstDifference(File.ReadAllBytes(_folder.File("destination"))));
        Assert.Equal(200_115, new FileInfo(_folder.File("destination")).Length);
    }

    [Fact]
    public async Task CopyToAsync_SmallFileInThePageCache_IsReadOnTheCallersThread()
    {
        int caller = Environment.CurrentManagedThreadId;
        bool isElsewhere = false;
        ScriptedCalls calls = new()
        {
            FileSystem = LocalFileSystems.Ext,
            OnReadNoWait = _ =>
            {
                isElsewhere |= Environment.CurrentManagedThreadId != caller;
                return null;
            },
        };
        FilePipeReader reader = calls.Read(_folder.File("source", Pattern.Bytes(300_000)));
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("destination"));
        Task copy = reader.CopyToAsync(writer, _stop);
        Assert.True(copy.IsCompletedSuccessfully);
        Assert.False(isElsewhere);
        await reader.CompleteAsync();
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(300_000), File.ReadAllBytes(_folder.File("destination")));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Position_DuringACopy_IsBehindWhatTheDestinationHas(bool isBuffered)
    {
        FilePipeReader reader = FilePipeReader.Create(
            _folder.File("source", Pattern.Bytes(300_000)), new() { BufferSize = 4096, Offset = 7 });
        if (isBuffered)
        {
            ReadResult result = await reader.ReadAsync(_stop);
            reader.AdvanceTo(result.Buffer.Start, result.Buffer.End);
        }

        List<(long Taken, long Position)> flushes = [];
        WatchedWriter? destination = null;
        destination = new() { OnFlush = () => flushes.Add((7 + destination!.Length, reader.Position)) };
        await reader.CopyToAsync(destination, _stop);
        Assert.Equal(300_000, reader.Position);
        await reader.CompleteAsync();
        Assert.True(flushes.Count > 1);

        // What was buffered before is consumed when its flush is over.
        Assert.All(flushes.Skip(isBuffered ? 64 : 0), flush => Assert.Equal(flush.Taken, flush.Position));
        Assert.All(flushes.Zip(flushes.Skip(1)), pair => Assert.InRange(pair.Second.Position, pair.First.Taken, pair.Second.Taken));
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task CopyToAsync_AfterAReadFailed_ThrowsAgainAndCopiesOnlyWhatCameBefore(bool toFile)
    {
        ScriptedCalls calls =
            new() { OnReadNoWait = call => call <= 2 ? 1000 : -Libc.EAGAIN, OnRead = call => call == 1 ? -Libc.EIO : null };
        FilePipeReader reader = calls.Read(_folder.File("source", Pattern.Bytes(10_000)));
        ReadResult result = await reader.ReadAtLeastAsync(2000, _stop);
        reader.AdvanceTo(result.Buffer.GetPosition(500), result.Buffer.End);
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(_stop));
        MemoryStream stream = new();
        PipeWriter writer = toFile ? FilePipeWriter.Create(_folder.File("destination")) : PipeWriter.Create(stream);
        await Assert.ThrowsAsync<IOException>(() => reader.CopyToAsync(writer, _stop));
        Assert.Equal(2000, reader.Position);
        await reader.CompleteAsync();
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(1500, 500), toFile ? File.ReadAllBytes(_folder.File("destination")) : stream.ToArray());
    }

    [Fact]
    public async Task CopyToAsync_WriterFailsMeanwhile_CopiesNothingAfterTheFailedByte()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        using SemaphoreSlim gate = new(0);
        ScriptedCalls calls = new()
        {
            OnWrite = call =>
            {
                gate.Wait(TestContext.Current.CancellationToken);
                return call == 1 ? 600 : -Libc.EIO;
            },
        };

        FilePipeWriter writer = calls.Write(
            _folder.File("destination"), new() { PauseWriterThreshold = 1000, ResumeWriterThreshold = 500 });
        writer.Put(1000);
        FilePipeReader reader = FilePipeReader.Create(_folder.File("source", Pattern.Bytes(1_500_000, 1000)));
        Task copy = reader.CopyToAsync(writer, _stop);
        gate.Release(2);
        await Assert.ThrowsAsync<IOException>(() => copy.WaitAsync(Eventually.Limit, _stop));
        await reader.CompleteAsync();
        await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.Equal(Pattern.Bytes(600), File.ReadAllBytes(_folder.File("destination")));
    }

    [Theory]
    [InlineData(false, false), InlineData(true, false), InlineData(true, true)]
    public async Task CopyToAsync_ToAStreamWhenAllIsExaminedAndThePipeIsIdle_WritesWhatIsBufferedAsTheBclsDoes(bool isOurs, bool asStream)
    {
        using Fifo fifo = Fifo.Create(_folder);
        SafeFileHandle readEnd = File.OpenHandle(fifo.Path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite);
        PipeReader reader = isOurs ? FilePipeReader.Create(readEnd) : PipeReader.Create(new FileStream(readEnd, FileAccess.Read, 1));
        fifo.Write([1, 2, 3]);
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.Start, result.Buffer.End);
        MemoryStream target = new();
        Task copy = asStream ? reader.AsStream(leaveOpen: true).CopyToAsync(target, _stop) : reader.CopyToAsync(target, _stop);
        await Eventually.TrueAsync(() => target.Length == 3);
        fifo.Dispose();
        await copy.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal([1, 2, 3], target.ToArray());
        await reader.CompleteAsync();
    }

    /// <summary>A pipe would rent 64 KiB only to be told that the file is over.</summary>
    [Fact]
    public async Task CopyToAsync_ReadFindsTheEnd_AsksForNoMemory()
    {
        FilePipeReader reader = FilePipeReader.Create(_folder.File("source", Pattern.Bytes(100_000)));
        List<int> asked = [];
        await reader.CopyToAsync(new WatchedWriter { OnGet = asked.Add }, _stop);
        await reader.CompleteAsync();
        Assert.Equal([65_536, 100_000 - 65_536], asked);
    }

    [Fact]
    public async Task CopyToAsync_FileHasGrownSinceItWasOpened_CopiesAllOfIt()
    {
        string path = _folder.File("source", Pattern.Bytes(10_000));
        FilePipeReader reader = FilePipeReader.Create(path, new() { Share = FileShare.ReadWrite });
        PatternFile.Append(path, 90_000, 10_000);

        WatchedWriter destination = new();
        await reader.CopyToAsync(destination, _stop);
        Assert.Equal((100_000, 100_000L), (destination.Length, reader.Position));
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(100_000, 2), InlineData(700_000, 4)]
    public async Task CopyToAsync_ReadAheadHasFoundTheEnd_DoesNotAskForItAgain(int length, int reads)
    {
        ScriptedCalls calls = new() { OnReadNoWait = _ => -Libc.EAGAIN };
        FilePipeReader reader = calls.Read(_folder.File("source", Pattern.Bytes(length)), new() { PauseReadAheadThreshold = 10_000_000 });
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.Start);

        await Eventually.TrueAsync(() => calls.Reads == reads);
        WatchedWriter destination = new();
        await reader.CopyToAsync(destination, _stop).WaitAsync(Eventually.Limit, _stop);
        Assert.Equal((length, reads), (destination.Length, calls.Reads));
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task CopyToAsync_IntoItsOwnFile_Appends()
    {
        string path = _folder.File("f", Pattern.Bytes(10_000));
        FilePipeReader reader = FilePipeReader.Create(path, new() { Share = FileShare.ReadWrite, Length = 10_000 });
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Append, Share = FileShare.ReadWrite });
        await reader.CopyToAsync(writer, _stop);
        await reader.CompleteAsync();
        await writer.CompleteAsync();
        byte[] content = File.ReadAllBytes(path);
        Assert.Equal(20_000, content.Length);
        Assert.Equal(-1, Pattern.FirstDifference(content.AsSpan(0, 10_000)));
        Assert.Equal(-1, Pattern.FirstDifference(content.AsSpan(10_000)));
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task CopyToAsync_CanceledBeforehandAtTheEnd_ThrowsAsTheBclsDoes(bool isOurs)
    {
        string path = _folder.File("f", Pattern.Bytes(100));
        PipeReader reader = isOurs ? FilePipeReader.Create(path) : PipeReader.Create(File.OpenRead(path));
        while (await reader.ReadAsync(_stop) is { IsCompleted: false } result)
        {
            reader.AdvanceTo(result.Buffer.End);
        }

        reader.CancelPendingRead();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => reader.CopyToAsync(PipeWriter.Create(Stream.Null), _stop));
        if (isOurs)
        {
            // The BCL's would throw again, for ever.
            await reader.CopyToAsync(PipeWriter.Create(Stream.Null), _stop);
        }

        await reader.CompleteAsync();
    }

    [Fact]
    public async Task CopyToAsync_AfterAReadIntoConsumedMemoryFoundTheEnd_TheNextReadGoesOnBehindTheCopy()
    {
        using ManualResetEventSlim gate = new();
        ScriptedCalls calls = new()
        {
            OnReadNoWait = call => call == 1 ? 1000 : call == 2 ? -Libc.EAGAIN : null,
            OnRead = call =>
            {
                gate.Wait(Eventually.Limit);
                return call == 1 ? 0 : null;
            },
        };
        string source = _folder.File("source", Pattern.Bytes(3000));
        FilePipeReader reader = calls.Read(source);
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.Start, result.Buffer.End);

        // The read goes on in the segment of the bytes that are consumed meanwhile.
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        reader.CancelPendingRead();
        result = await read.WaitAsync(Eventually.Limit, _stop);
        reader.AdvanceTo(result.Buffer.End);
        gate.Set();
        Assert.True((await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop)).IsCompleted);

        MemoryStream copied = new();
        PipeWriter writer = PipeWriter.Create(copied);
        await reader.CopyToAsync(writer, _stop);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(2000, 1000), copied.ToArray());
        File.AppendAllBytes(source, Pattern.Bytes(500, 3000));
        result = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(Pattern.Bytes(500, 3000), result.Buffer.ToArray());
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(FilePipeBackend.Auto), InlineData(FilePipeBackend.Portable)]
    public async Task CopyToAsync_CanceledWhileNobodyWritesToAFifo_EndsAtOnceAndTheBytesComeLater(FilePipeBackend backend)
    {
        using Fifo fifo = Fifo.Create(_folder);
        FilePipeReader reader = FilePipeReader.Create(fifo.Path, new() { Backend = backend });
        Task copy = reader.CopyToAsync(PipeWriter.Create(Stream.Null), _stop);
        reader.CancelPendingRead();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => copy.WaitAsync(Eventually.Limit, _stop));
        using CancellationTokenSource canceled = new();
        copy = reader.CopyToAsync(PipeWriter.Create(Stream.Null), canceled.Token);
        await canceled.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => copy.WaitAsync(Eventually.Limit, _stop));
        fifo.Write([1, 2, 3]);
        ReadResult result = await reader.ReadAtLeastAsync(3, _stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.Equal([1, 2, 3], result.Buffer.ToArray());
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task CopyToAsync_FromProc_CopiesWhatItHolds()
    {
        Assert.SkipUnless(File.Exists("/proc/self/maps"), "There is no /proc.");
        FilePipeReader reader = FilePipeReader.Create("/proc/cpuinfo");
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("destination"));
        await reader.CopyToAsync(writer, _stop);
        await reader.CompleteAsync();
        await writer.CompleteAsync();
        Assert.StartsWith("processor", File.ReadAllText(_folder.File("destination")), StringComparison.Ordinal);
    }

    [Fact]
    public async Task CopyToAsync_DurableAndLarge_SyncsOnceAtTheEnd()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        long written = -1;
        string path = _folder.File("destination");
        ScriptedCalls writes = new()
        {
            OnSync = _ =>
            {
                written = new FileInfo(path).Length;
                return null;
            },
        };
        string source = _folder.File("source");
        using (FileStream file = new(source, FileMode.Create))
        {
            file.SetLength(50_000_000);
            file.Write(Pattern.Bytes(1000));
        }

        FilePipeReader reader = FilePipeReader.Create(source);
        FilePipeWriter writer = writes.Write(path, new() { FlushGuarantee = FlushGuarantee.Durable });
        await reader.CopyToAsync(writer, _stop);
        Assert.Equal(1, writes.Syncs);
        Assert.Equal(50_000_000, written);
        await reader.CompleteAsync();
        await writer.CompleteAsync();
        Assert.Equal(1, writes.Syncs);
    }
}
