using FilePipelines.Child;
using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>What comes to a writer while a copy into it is under way.</summary>
public sealed class CopyUnderWayTests : IDisposable
{
    private const int Length = 20_000_000;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public CopyUnderWayTests() => Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Unix system calls.");

    public void Dispose() => _folder.Dispose();

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task DisposeAsync_ReplaceWhileACopyIsUnderWay_GivesUpAndTheOldFileStays(bool isMemory)
    {
        string path = _folder.File("f", [1, 2, 3]);
        using ManualResetEventSlim begun = new();
        using ManualResetEventSlim goOn = new();
        ScriptedCalls calls = new() { OnWrite = Wait };
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, calls);
        Task copy = isMemory
            ? writer.WriteAsync(Pattern.Bytes(Length), _stop).AsTask()
            : FilePipeReader.Create(_folder.File("source", Pattern.Bytes(Length))).CopyToAsync(writer, _stop);
        begun.Wait(_stop);
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await writer.CompleteAsync());
        Task end = writer.DisposeAsync().AsTask();
        goOn.Set();
        await Record.ExceptionAsync(() => end.WaitAsync(Eventually.Limit, _stop));
        Assert.NotNull(await Record.ExceptionAsync(() => copy));
        Assert.Equal([1, 2, 3], File.ReadAllBytes(path));
        Assert.True(writer.OpenedFile.Handle.IsClosed);

        long? Wait(int call)
        {
            begun.Set();
            goOn.Wait();
            return null;
        }
    }

    [Fact]
    public async Task CompleteAsync_ReplaceWhileACopyWaitsForItsSource_ThrowsAndTheOldFileStays()
    {
        string path = _folder.File("f", [1, 2, 3]);
        using Fifo fifo = Fifo.Create(_folder);
        FilePipeReader reader = FilePipeReader.Create(fifo.Path);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });
        Task copy = reader.CopyToAsync(writer, _stop);
        Assert.False(copy.IsCompleted);
        await Assert.ThrowsAsync<InvalidOperationException>(() => writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop));
        Assert.Equal([1, 2, 3], File.ReadAllBytes(path));
        reader.CancelPendingRead();
        await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.NotNull(await Record.ExceptionAsync(() => copy.WaitAsync(Eventually.Limit, _stop)));
        writer.Dispose();
        Assert.Equal([1, 2, 3], File.ReadAllBytes(path));
    }

    [Fact]
    public async Task CompleteAsync_ReplaceWhileALargeWriteIsPaced_ThrowsAndTheWholeFileAppearsAfterIt()
    {
        string path = _folder.File("f", [1, 2, 3]);
        using ManualResetEventSlim goOn = new();
        ScriptedCalls calls = new()
        {
            OnWrite = call =>
            {
                goOn.Wait(Eventually.Limit);
                return null;
            },
        };
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, calls);
        Task write = writer.WriteAsync(Pattern.Bytes(Length), _stop).AsTask();
        Exception? refused = await Record.ExceptionAsync(async () => await writer.CompleteAsync());
        bool wasUnderWay = !write.IsCompleted;
        goOn.Set();
        Assert.True(wasUnderWay);
        Assert.IsType<InvalidOperationException>(refused);
        await write.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal([1, 2, 3], File.ReadAllBytes(path));
        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes(Length).AsSpan().SequenceEqual(File.ReadAllBytes(path)));
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task CompleteAsync_AfterAbortDuringACopy_IsOverWhenTheFileIsClosed(bool isMemory)
    {
        string path = _folder.File("f");
        using ManualResetEventSlim begun = new();
        using ManualResetEventSlim goOn = new();
        ScriptedCalls calls = new() { OnWrite = Wait };
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = FlushGuarantee.Durable });
        Task copy = isMemory
            ? writer.WriteAsync(Pattern.Bytes(Length), _stop).AsTask()
            : FilePipeReader.Create(_folder.File("source", Pattern.Bytes(Length))).CopyToAsync(writer, _stop);
        try
        {
            Assert.True(begun.Wait(Eventually.Limit, _stop));
            writer.Abort();

            // The system is still at the file: whoever deletes it, or opens it for himself, has to wait for that.
            Task completion = writer.CompleteAsync().AsTask();
            Assert.False(completion.IsCompleted);
            Assert.Equal(1, OpenHandles.Of(path));
            goOn.Set();
            await completion.WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(0, OpenHandles.Of(path));
            Assert.Equal(0, calls.Syncs);
            Assert.NotNull(await Record.ExceptionAsync(() => copy.WaitAsync(Eventually.Limit, _stop)));
        }
        finally
        {
            goOn.Set();
        }

        long? Wait(int call)
        {
            begun.Set();
            goOn.Wait(Eventually.Limit);
            return null;
        }
    }

    [Fact]
    public async Task WriteAsync_WhileMemoryIsWrittenDirectly_ThrowsAndNothingIsLost()
    {
        string path = _folder.File("f");
        using ManualResetEventSlim begun = new();
        using ManualResetEventSlim goOn = new();
        ScriptedCalls calls = new()
        {
            OnWrite = call =>
            {
                begun.Set();
                goOn.Wait();
                return null;
            },
        };
        FilePipeWriter writer = calls.Write(path);
        Task copy = writer.WriteAsync(Pattern.Bytes(Length), _stop).AsTask();
        begun.Wait(_stop);
        Exception? overlap = await Record.ExceptionAsync(async () => await writer.WriteAsync(new byte[] { 1 }, _stop));
        goOn.Set();
        Assert.IsType<InvalidOperationException>(overlap);
        await copy;
        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes(Length).AsSpan().SequenceEqual(File.ReadAllBytes(path)));
    }

    [Theory]
    [InlineData(Length)]
    [InlineData(1000)]
    public async Task CopyToAsync_CanceledAndRepeated_WritesEveryByteOnce(int length)
    {
        string path = _folder.File("f");
        using CancellationTokenSource cancel = new();
        ScriptedCalls calls = new()
        {
            OnWrite = call =>
            {
                cancel.Cancel();
                return null;
            },
        };
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = FlushGuarantee.Written });
        PooledMemoryStream stream = MemoryOf(length);
        Exception? canceled = await Record.ExceptionAsync(() => stream.CopyToAsync(writer, cancel.Token));

        // One write alone may be over before the wait for it has begun.
        Assert.True(canceled is OperationCanceledException || (canceled is null && length < Length), canceled?.ToString());
        await stream.CopyToAsync(writer, _stop);
        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes(length).AsSpan().SequenceEqual(File.ReadAllBytes(path)), $"{new FileInfo(path).Length} bytes");
    }

    private static PooledMemoryStream MemoryOf(int length)
    {
        PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(length));
        stream.Position = 0;
        return stream;
    }
}
