using FilePipelinesChild;
using Pipelines.File;

namespace FilePipelinesTests;

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
    public async Task CompleteAsync_ReplaceWhileACopyIsUnderWay_ThrowsAndTheOldFileStays(bool isMemory)
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
        Task completion = writer.CompleteAsync().AsTask();
        goOn.Set();
        await Assert.ThrowsAsync<InvalidOperationException>(() => completion);
        Assert.NotNull(await Record.ExceptionAsync(() => copy));
        Assert.Equal([1, 2, 3], File.ReadAllBytes(path));

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
        // No call of the writer is under way then, but the copy is.
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
    }

    [Fact]
    public async Task CompleteAsync_ReplaceWhileALargeWriteIsPaced_ThrowsAndTheOldFileStays()
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
        Task completion = writer.CompleteAsync().AsTask();
        bool wasUnderWay = !write.IsCompleted;
        goOn.Set();
        Assert.True(wasUnderWay);
        await Assert.ThrowsAsync<InvalidOperationException>(() => completion.WaitAsync(Eventually.Limit, _stop));
        Assert.NotNull(await Record.ExceptionAsync(() => write.WaitAsync(Eventually.Limit, _stop)));
        Assert.Equal([1, 2, 3], File.ReadAllBytes(path));
    }

    /// <summary>Ways to end a writer.</summary>
    public enum Ending
    {
        CompleteAsync,
        CompleteAsyncWithException,
        Abort,
    }

    public static MatrixTheoryData<Ending, bool> Ends { get; } = new(Enum.GetValues<Ending>(), [false, true]);

    [Theory]
    [MemberData(nameof(Ends))]
    public async Task CompleteAsync_WhileACopyIsUnderWay_IsOverWhenTheFileIsClosed(Ending end, bool isMemory)
    {
        string path = _folder.File("f");
        using ManualResetEventSlim begun = new();
        using ManualResetEventSlim goOn = new();
        bool isSyncedTooEarly = false;
        ScriptedCalls calls = new() { OnWrite = Wait, OnSync = Note };
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = FlushGuarantee.Durable });
        Task copy = isMemory
            ? writer.WriteAsync(Pattern.Bytes(Length), _stop).AsTask()
            : FilePipeReader.Create(_folder.File("source", Pattern.Bytes(Length))).CopyToAsync(writer, _stop);
        try
        {
            Assert.True(begun.Wait(Eventually.Limit, _stop));
            if (end == Ending.Abort)
            {
                writer.Abort();
            }

            // The system is still at the file: whoever deletes it, or opens it for himself, has to wait for that.
            Task completion = writer.CompleteAsync(
                end == Ending.CompleteAsyncWithException ? new IOException("the source broke") : null).AsTask();
            Assert.False(completion.IsCompleted);
            Assert.Equal(1, OpenHandles.Of(path));
            goOn.Set();
            await completion.WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(0, OpenHandles.Of(path));
            Assert.Equal(end == Ending.Abort ? 0 : 1, calls.Syncs);
            Assert.False(isSyncedTooEarly);

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

        long? Note(int call)
        {
            isSyncedTooEarly |= !goOn.IsSet;
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
