namespace FilePipelines.Tests;

/// <summary>What comes to a writer while a copy into it is under way.</summary>
public sealed class CopyUnderWayTests : FileTests
{
    private const int Length = 20_000_000;

    public CopyUnderWayTests() => Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Unix system calls.");

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task DisposeAsync_ReplaceWhileACopyIsUnderWay_GivesUpAndTheOldFileStays(bool isMemory)
    {
        string path = _folder.File("f", [1, 2, 3]);
        using Gate gate = new();
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, new ScriptedCalls { OnWrite = gate.Hold });
        Task copy = CopyAsync(writer, isMemory);
        gate.WaitForCall();
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await writer.CompleteAsync());
        Task end = writer.DisposeAsync().AsTask();
        gate.Open();
        await Record.ExceptionAsync(() => end.WaitAsync(Eventually.Limit, _stop));
        Assert.NotNull(await Record.ExceptionAsync(() => copy));
        Assert.Equal([1, 2, 3], File.ReadAllBytes(path));
        Assert.True(writer.OpenedFile.Handle.IsClosed);
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task CompleteAsync_AfterAbortDuringACopy_IsOverWhenTheFileIsClosed(bool isMemory)
    {
        string path = _folder.File("f");
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = gate.Hold };
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = FlushGuarantee.Durable });
        Task copy = CopyAsync(writer, isMemory);
        gate.WaitForCall();
        writer.Abort();

        // The system is still at the file: whoever deletes it, or opens it for himself, has to wait for that.
        Task completion = writer.CompleteAsync().AsTask();
        Assert.False(completion.IsCompleted);
        Assert.Equal(1, OpenHandles.Of(path));
        gate.Open();
        await completion.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(0, OpenHandles.Of(path));
        Assert.Equal(0, calls.Syncs);
        Assert.NotNull(await Record.ExceptionAsync(() => copy.WaitAsync(Eventually.Limit, _stop)));
    }

    private Task CopyAsync(FilePipeWriter writer, bool isMemory)
        => isMemory ? writer.WriteAsync(Pattern.Bytes(Length), _stop).AsTask()
            : FilePipeReader.Create(_folder.File("source", Pattern.Bytes(Length))).CopyToAsync(writer, _stop);

    [Theory]
    [InlineData(Length), InlineData(1000)]
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
