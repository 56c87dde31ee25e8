namespace FilePipelines.Tests;

/// <summary>
/// A writer that is given up: on a FIFO whose reader has stalled, in the middle of a write, before anything, and after everything.
/// </summary>
public sealed class AbortTests : FileTests
{

    public AbortTests() => ChildProcess.SkipUnlessLinux();

    [Theory]
    [InlineData(0, 1), InlineData(1, 2), InlineData(2, 3), InlineData(3, 4), InlineData(4, 5), InlineData(0, 4)]
    public async Task Abort_WhileTheseCompletionsWaitForAStalledFifo_EndsThemAsCanceled(int from, int to)
    {
        CheckedPool pool = new();
        using SafeFileHandle readEnd = StalledFifo(out FilePipeWriter writer, new() { Mode = FileMode.Open, Pool = pool });
        await writer.WriteAsync(Pattern.Bytes(300_000), _stop);
        InvalidOperationException reason = new("the source broke");
        Func<Task<Task>>[] completions =
        [
            () => Task.FromResult(writer.CompleteAsync().AsTask()),
            () => Task.FromResult(writer.CompleteAsync(reason).AsTask()),
            () => OnABlockedThreadAsync(() => writer.Complete()),
            () => OnABlockedThreadAsync(() => writer.Complete(reason)),
            () => Task.FromResult(writer.DisposeAsync().AsTask()),
        ];
        List<Task> waits = [];
        foreach (Func<Task<Task>> completion in completions[from..to])
        {
            waits.Add(await completion());
        }

        Assert.DoesNotContain(waits, wait => wait.IsCompleted);
        writer.Abort();
        foreach (Task wait in waits)
        {
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => wait.WaitAsync(Eventually.Limit, _stop));
        }

        await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        AssertReleased(writer, pool);
    }

    [Fact]
    public async Task Abort_AfterGetMemoryWasRefused_GivesEverythingBack()
    {
        CheckedPool pool = new();
        using SafeFileHandle readEnd = StalledFifo(
            out FilePipeWriter writer, new() { Mode = FileMode.Open, Pool = pool, MinimumBufferSize = 4096 });
        await writer.WriteAsync(Pattern.Bytes(200_001), _stop);
        Task completing = writer.CompleteAsync().AsTask();

        // The drain still has the segment that this would be in.
        Assert.Throws<InvalidOperationException>(() => writer.GetMemory());
        writer.Abort();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => completing.WaitAsync(Eventually.Limit, _stop));
        AssertReleased(writer, pool);
    }

    [Fact]
    public async Task Abort_OfAWriterThatDoesNothing_ClosesTheFileAndDropsWhatWasNotFlushed()
    {
        CheckedPool pool = new();
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { FlushGuarantee = FlushGuarantee.Written, Pool = pool, PreallocationSize = 100_000 });
        await writer.WriteAsync(Pattern.Bytes(1000), _stop);
        writer.Put(500, 1000);
        writer.Abort();

        // The flush was told of its write a moment before the loop is idle, which then closes the file.
        await Eventually.TrueAsync(() => writer.OpenedFile.Handle.IsClosed && pool.Rented == 0);
        AssertReleased(writer, pool);
        Assert.Equal(1000, writer.Position);
        Assert.Equal(0, writer.UnflushedBytes);
        Assert.Equal(Pattern.Bytes(1000), File.ReadAllBytes(path));

        // Afterwards it is a completed writer, and no end of it throws.
        Assert.Throws<InvalidOperationException>(() => writer.GetMemory());
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await writer.FlushAsync(_stop));
        writer.Abort();
        writer.CancelPendingFlush();
        writer.Complete();
        writer.Complete(new InvalidOperationException());
        writer.Dispose();
        await writer.CompleteAsync();
        await writer.DisposeAsync();
    }

    [Fact]
    public async Task Abort_AfterTheWriterIsComplete_ChangesNothing()
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"));
        await writer.WriteAllAsync(Pattern.Bytes(1000));
        writer.Abort();
        await writer.CompleteAsync();
        Assert.Equal(1000, writer.Position);
        Assert.Equal(Pattern.Bytes(1000), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task Abort_AfterAWriteFailed_IsHowAnErrorIsLeft()
    {
        ScriptedCalls calls = new() { OnWrite = _ => -Libc.EIO };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(1000), _stop));
        writer.Abort();
        await writer.DisposeAsync();
        Assert.True(writer.OpenedFile.Handle.IsClosed);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Abort_WhileTheSystemHasAWrite_EndsTheFlushAtOnceAndReleasesWhenTheSystemIsDone(bool isSync)
    {
        CheckedPool pool = new();
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = call => isSync ? null : gate.Hold(call), OnSync = gate.Hold };
        FilePipeWriter writer = calls.Write(
            _folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable, Pool = pool, MinimumBufferSize = 1000 });
        Task<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(10_000), _stop).AsTask();
        gate.WaitForCall();
        writer.Abort();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => flush.WaitAsync(Eventually.Limit, _stop));
        Task completing = writer.CompleteAsync().AsTask();
        Assert.False(writer.OpenedFile.Handle.IsClosed);
        Assert.False(completing.IsCompleted);
        Assert.True(isSync || pool.Rented > 0);
        gate.Open();
        await completing.WaitAsync(Eventually.Limit, _stop);
        AssertReleased(writer, pool);
        Assert.Equal(Pattern.Bytes(10_000), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task Abort_WhileTheCallerHasMemory_ItIsNoOtherWriters()
    {
        // A size that no other test uses.
        const int Size = 45_056;
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { MinimumBufferSize = Size });
        Memory<byte> held = writer.GetMemory();
        writer.Abort();
        FilePipeWriter other = FilePipeWriter.Create(_folder.File("other"), new() { MinimumBufferSize = Size });
        Pattern.Fill(other.GetSpan(Size)[..Size], 0);
        held.Span.Fill(0xEE);
        other.Advance(Size);
        await other.CompleteAsync();
        Assert.Equal(Pattern.Bytes(Size), File.ReadAllBytes(_folder.File("other")));
    }

    [Fact]
    public async Task Abort_LeaveOpen_LeavesTheHandleOpen()
    {
        using SafeFileHandle readEnd = StalledFifo(out FilePipeWriter first, new() { Mode = FileMode.Open });
        using SafeFileHandle handle = File.OpenHandle(_folder.File("fifo"), FileMode.Open, FileAccess.Write);
        FilePipeWriter writer = FilePipeWriter.Create(handle, new() { LeaveOpen = true, FlushGuarantee = FlushGuarantee.Written });
        Task<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(300_000), _stop).AsTask();
        writer.Abort();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => flush.WaitAsync(Eventually.Limit, _stop));
        await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.False(handle.IsClosed);
        first.Abort();
    }

    /// <summary>Runs it on a thread of its own, and goes on when that waits.</summary>
    private static async Task<Task> OnABlockedThreadAsync(Action action)
    {
        TaskCompletionSource done = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Thread thread = new(() =>
        {
            try
            {
                action();
                done.SetResult();
            }
            catch (Exception e)
            {
                done.SetException(e);
            }
        })
        { IsBackground = true };
        thread.Start();
        await Eventually.TrueAsync(() => (thread.ThreadState & ThreadState.WaitSleepJoin) != 0 || done.Task.IsCompleted);
        return done.Task;
    }

    private static void AssertReleased(FilePipeWriter writer, CheckedPool pool)
    {
        Assert.True(writer.OpenedFile.Handle.IsClosed);
        pool.AssertReturned();
    }

    /// <summary>A writer to a FIFO that nobody reads, though its read end is open.</summary>
    private SafeFileHandle StalledFifo(out FilePipeWriter writer, FilePipeWriterOptions options, string name = "fifo")
    {
        string path = Fifo.Make(_folder, name);
        SafeFileHandle readEnd = Fifo.OpenBothWays(path);
        writer = FilePipeWriter.Create(path, options);
        return readEnd;
    }
}
