namespace FilePipelines.Tests;

/// <summary>Opening without holding up the caller.</summary>
public sealed class OpenAsyncTests : FileTests
{
    [Theory]
    [InlineData(FilePipeBackend.Auto), InlineData(FilePipeBackend.Portable)]
    public async Task OpenAsync_OfAFile_WritesAndReadsAsCreate(FilePipeBackend backend)
    {
        string path = _folder.File("f");
        FilePipeWriter writer = await FilePipeWriter.OpenAsync(path, new() { Backend = backend, PreallocationSize = 10_000 }, _stop);
        await writer.WriteAllAsync(Pattern.Bytes(5000));
        FilePipeReader reader = await FilePipeReader.OpenAsync(path, new() { Backend = backend, Offset = 1000 }, _stop);
        ReadResult result = await reader.ReadAtLeastAsync(4000, _stop);
        Assert.Equal(4000, result.Buffer.Length);
        Assert.Equal(-1, Pattern.FirstDifference(result.Buffer.ToArray(), 1000));
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task OpenAsync_CannotBeOpened_ThrowsWhatCreateThrows()
    {
        string file = _folder.File("f", []);
        await SameAsync(_folder.File("missing"));
        await SameAsync(_folder.File("missing/f"));
        await SameAsync(_folder.Path);
        await SameAsync(file, new() { Backend = OperatingSystem.IsWindows() ? FilePipeBackend.UnixThreads : FilePipeBackend.Overlapped });
        await SameAsync("");
        Exception exists = Assert.ThrowsAny<IOException>(() => FilePipeWriter.Create(file, new() { Mode = FileMode.CreateNew }));
        IOException thrown = await Assert.ThrowsAnyAsync<IOException>(
            () => FilePipeWriter.OpenAsync(file, new() { Mode = FileMode.CreateNew }, _stop).AsTask());
        Assert.Equal(exists.Message, thrown.Message);

        async Task SameAsync(string path, FilePipeReaderOptions? options = null)
        {
            Exception expected = Assert.ThrowsAny<Exception>(() => FilePipeReader.Create(path, options));
            Exception actual = await Assert.ThrowsAnyAsync<Exception>(async () => await FilePipeReader.OpenAsync(path, options, _stop));
            Assert.Equal(expected.GetType(), actual.GetType());
            Assert.Equal(expected.Message, actual.Message);
        }
    }

    [Fact]
    public async Task OpenAsync_CanceledBefore_OpensNothing()
    {
        string path = _folder.File("f");
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => FilePipeWriter.OpenAsync(path, null, new CancellationToken(canceled: true)).AsTask());
        Assert.False(File.Exists(path));
    }

    [Fact]
    public async Task OpenAsync_CanceledMeanwhile_EndsWithOneOfBothAndLeavesNothingOpen()
    {
        string path = _folder.File("f", Pattern.Bytes(10));
        for (int i = 0; i < 300; i++)
        {
            using CancellationTokenSource cancel = new();
            Task<FilePipeReader> opening = FilePipeReader.OpenAsync(path, null, cancel.Token).AsTask();
            Thread.SpinWait(i * 20);
            await cancel.CancelAsync();
            try
            {
                await (await opening).CompleteAsync();
            }
            catch (OperationCanceledException e)
            {
                Assert.Equal(cancel.Token, e.CancellationToken);
            }
        }

        if (OperatingSystem.IsLinux())
        {
            await OpenHandles.NoneAsync(path);
        }
    }

    [Fact]
    public async Task OpenAsync_OfAFifoToRead_WaitsForAWriterWhoWritesNothingYet()
    {
        string path = Fifo.Make(_folder);
        Task<FilePipeReader> opening = FilePipeReader.OpenAsync(path, null, _stop).AsTask();
        await Task.Delay(100, _stop);
        Assert.False(opening.IsCompleted);

        // The reading side is there, so that this does not wait.
        using FileStream writer = new(path, FileMode.Open, FileAccess.Write, FileShare.ReadWrite, bufferSize: 0);
        FilePipeReader reader = await opening.WaitAsync(Eventually.Limit, _stop);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        Assert.Equal(10, (await read).Buffer.Length);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task OpenAsync_OfAFifoNobodyElseOpens_IsCanceledAtOnceAndClosed()
    {
        string path = Fifo.Make(_folder);
        foreach (bool reads in (bool[])[true, false, true, false])
        {
            using CancellationTokenSource cancel = new();
            Task opening = reads
                ? FilePipeReader.OpenAsync(path, null, cancel.Token).AsTask()
                : FilePipeWriter.OpenAsync(path, null, cancel.Token).AsTask();
            await Task.Delay(60, _stop);
            Assert.False(opening.IsCompleted);
            await cancel.CancelAsync();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => opening.WaitAsync(Eventually.Limit, _stop));
            await OpenHandles.NoneAsync(path);
        }
    }

    [Fact]
    public async Task OpenAsync_OfAFifoWithOffset_ThrowsAndCloses()
    {
        using Fifo fifo = Fifo.Create(_folder);
        int before = OpenHandles.Of(fifo.Path);
        await Assert.ThrowsAsync<NotSupportedException>(() => FilePipeReader.OpenAsync(fifo.Path, new() { Offset = 1 }, _stop).AsTask());
        Assert.Equal(before, OpenHandles.Of(fifo.Path));
    }

    [Theory]
    [InlineData(FileMode.Create), InlineData(FileMode.Append)]
    public async Task OpenAsync_FifoReplacedByAFileWhileItWaits_WritesAsTheModeSays(FileMode mode)
    {
        string path = Fifo.Make(_folder);
        Task<FilePipeWriter> opening = FilePipeWriter.OpenAsync(path, new() { Mode = mode }, _stop).AsTask();
        await Task.Delay(60, _stop);
        Assert.False(opening.IsCompleted);
        File.Move(_folder.File("f", "0123456789"u8.ToArray()), path, overwrite: true);
        FilePipeWriter writer = await opening.WaitAsync(Eventually.Limit, _stop);
        await writer.WriteAllAsync("new"u8.ToArray());
        Assert.Equal(mode == FileMode.Append ? "0123456789new" : "new", await File.ReadAllTextAsync(path, _stop));
        await OpenHandles.NoneAsync(path);
    }

    [Fact]
    public async Task ReadAsync_HandleClosedByItsOwnerWhileItWaits_StillEndsAndThenReleasesIt()
    {
        using Fifo fifo = Fifo.Create(_folder);
        int before = OpenHandles.Of(fifo.Path);
        SafeFileHandle handle = File.OpenHandle(fifo.Path);
        FilePipeReader reader = FilePipeReader.Create(handle, new() { LeaveOpen = true });
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        await Task.Delay(50, _stop);
        handle.Dispose();
        fifo.Write(Pattern.Bytes(10));
        try
        {
            Assert.Equal(10, (await read.WaitAsync(Eventually.Limit, _stop)).Buffer.Length);
        }
        catch (ObjectDisposedException)
        {
            // The call came after the wait, and found the handle closed.
        }

        await reader.CompleteAsync();
        await Eventually.TrueAsync(() => OpenHandles.Of(fifo.Path) == before);
    }
}
