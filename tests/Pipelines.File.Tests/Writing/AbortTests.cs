using System.IO.Pipelines;
using FilePipelines.Child;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelines.Tests;

/// <summary>
/// A writer that is given up: on a FIFO whose reader has stalled, in the middle of a write, before anything, and after everything.
/// </summary>
public sealed class AbortTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly ManualResetEventSlim _gate = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public AbortTests() => ChildProcess.SkipUnlessLinux();

    public void Dispose()
    {
        _gate.Set();
        _folder.Dispose();
    }

    [Theory]
    [InlineData(FlushGuarantee.Written)]
    [InlineData(FlushGuarantee.Durable)]
    public async Task Abort_WithPendingFlushesOnAStalledFifo_EndsThemAndReleasesEverything(FlushGuarantee guarantee)
    {
        CheckedPool pool = new();
        using SafeFileHandle readEnd = StalledFifo(
            out FilePipeWriter writer, new() { Mode = FileMode.Open, FlushGuarantee = guarantee, Pool = pool });
        Task<FlushResult>[] flushes = [.. Enumerable.Range(0, 3)
            .Select(i => writer.WriteAsync(Pattern.Bytes(200_000, i * 200_000), _stop).AsTask())];
        Assert.DoesNotContain(flushes, flush => flush.IsCompleted);
        writer.Abort();
        foreach (Task<FlushResult> flush in flushes)
        {
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => flush.WaitAsync(Eventually.Limit, _stop));
        }

        await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        AssertReleased(writer, pool);

        // What is in the FIFO is the beginning of what was written.
        using FileStream source = new(readEnd, FileAccess.Read, 1);
        byte[] content = new byte[4096];
        await source.ReadExactlyAsync(content, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(content));
    }

    /// <summary>Who waits for the writer's end when Abort comes.</summary>
    public enum Waiting
    {
        CompleteAsync,
        CompleteAsyncWithException,
        Complete,
        CompleteWithException,
        DisposeAsync,
        All,
    }

    [Theory]
    [InlineData(Waiting.CompleteAsync)]
    [InlineData(Waiting.CompleteAsyncWithException)]
    [InlineData(Waiting.Complete)]
    [InlineData(Waiting.CompleteWithException)]
    [InlineData(Waiting.DisposeAsync)]
    [InlineData(Waiting.All)]
    public async Task Abort_WhileTheCompletionWaitsForAStalledFifo_EndsItAsCanceled(Waiting waiting)
    {
        CheckedPool pool = new();
        using SafeFileHandle readEnd = StalledFifo(out FilePipeWriter writer, new() { Mode = FileMode.Open, Pool = pool });
        await writer.WriteAsync(Pattern.Bytes(300_000), _stop);
        InvalidOperationException reason = new("the source broke");
        List<Task> waits = [];
        if (waiting is Waiting.CompleteAsync or Waiting.All)
        {
            waits.Add(writer.CompleteAsync().AsTask());
        }

        if (waiting is Waiting.CompleteAsyncWithException or Waiting.All)
        {
            waits.Add(writer.CompleteAsync(reason).AsTask());
        }

        if (waiting is Waiting.DisposeAsync)
        {
            waits.Add(writer.DisposeAsync().AsTask());
        }

        if (waiting is Waiting.Complete or Waiting.All)
        {
            waits.Add(await OnABlockedThreadAsync(() => writer.Complete()));
        }

        if (waiting is Waiting.CompleteWithException or Waiting.All)
        {
            waits.Add(await OnABlockedThreadAsync(() => writer.Complete(reason)));
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
        Pattern.Fill(writer.GetSpan(500)[..500], 1000);
        writer.Advance(500);
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
        await writer.WriteAsync(Pattern.Bytes(1000), _stop);
        await writer.CompleteAsync();
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
    [InlineData(false)]
    [InlineData(true)]
    public async Task Abort_WhileTheSystemHasAWrite_EndsTheFlushAtOnceAndReleasesWhenTheSystemIsDone(bool isSync)
    {
        CheckedPool pool = new();
        using ManualResetEventSlim isCalled = new();
        ScriptedCalls calls = new() { OnWrite = _ => isSync ? null : Block(isCalled), OnSync = _ => Block(isCalled) };
        FilePipeWriter writer = calls.Write(
            _folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable, Pool = pool, MinimumBufferSize = 1000 });
        Task<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(10_000), _stop).AsTask();
        isCalled.Wait(_stop);
        writer.Abort();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => flush.WaitAsync(Eventually.Limit, _stop));
        Task completing = writer.CompleteAsync().AsTask();
        Assert.False(writer.OpenedFile.Handle.IsClosed);
        Assert.False(completing.IsCompleted);
        Assert.True(isSync || pool.Rented > 0);
        _gate.Set();
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

    [Fact]
    public async Task Abort_WhileALargeWriteIsPaced_EndsItAndKeepsNothing()
    {
        CheckedPool pool = new();
        using SafeFileHandle readEnd = StalledFifo(out FilePipeWriter writer, new() { Mode = FileMode.Open, Pool = pool });
        Task<FlushResult> write = writer.WriteAsync(Pattern.Bytes(5_000_000), _stop).AsTask();
        await Eventually.TrueAsync(() => writer.Position > 0);
        writer.Abort();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => write.WaitAsync(Eventually.Limit, _stop));
        await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        AssertReleased(writer, pool);
    }

    [Fact]
    public async Task Abort_DuringACopyIntoTheWriter_EndsTheCopy()
    {
        CheckedPool pool = new();
        using SafeFileHandle readEnd = StalledFifo(out FilePipeWriter writer, new() { Mode = FileMode.Open, Pool = pool });
        FilePipeReader reader = FilePipeReader.Create(_folder.File("f", Pattern.Bytes(5_000_000)));
        Task copy = reader.CopyToAsync(writer, _stop);
        await Eventually.TrueAsync(() => writer.Position > 0);
        writer.Abort();
        Exception? thrown = await Record.ExceptionAsync(() => copy.WaitAsync(Eventually.Limit, _stop));
        Assert.True(thrown is OperationCanceledException or InvalidOperationException, $"{thrown}");
        await reader.CompleteAsync();
        await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        AssertReleased(writer, pool);
    }

    [Fact]
    public async Task Abort_FromAnotherThreadAtAnyMoment_EndsEveryCallAndReleasesEverything()
    {
        CheckedPool pool = new();
        for (int round = 0; round < 200; round++)
        {
            using SafeFileHandle readEnd = StalledFifo(
                out FilePipeWriter writer,
                new()
                {
                    Mode = FileMode.Open,
                    Pool = pool,
                    MinimumBufferSize = 5000,
                    PauseWriterThreshold = 50_000,
                    FlushGuarantee = (FlushGuarantee)(round % 3),
                },
                $"fifo{round}");
            Task aborting = Task.Run(
                () =>
                {
                    Thread.SpinWait(round * 100);
                    writer.Abort();
                },
                _stop);
            try
            {
                for (int index = 0; index < 300_000; index += 1000)
                {
                    await writer.WriteAsync(Pattern.Bytes(1000, index), _stop).AsTask().WaitAsync(Eventually.Limit, _stop);
                }

                if (round % 2 == 0)
                {
                    await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
                }
                else
                {
                    writer.Complete();
                }
            }
            catch (Exception e) when (e is OperationCanceledException or InvalidOperationException or ArgumentOutOfRangeException)
            {
                // The last is Advance over memory that Abort has taken meanwhile.
            }

            await aborting;
            await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
            Assert.True(writer.OpenedFile.Handle.IsClosed);
        }

        Assert.Equal(0, pool.ReturnedTwice);
        Assert.Equal(0, pool.ReturnedPinned);
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
        Assert.Equal(0, pool.Rented);
        Assert.Equal(0, pool.ReturnedTwice);
        Assert.Equal(0, pool.ReturnedPinned);
    }

    /// <summary>A writer to a FIFO that nobody reads, though its read end is open.</summary>
    private SafeFileHandle StalledFifo(out FilePipeWriter writer, FilePipeWriterOptions options, string name = "fifo")
    {
        string path = Fifo.Make(_folder, name);
        SafeFileHandle readEnd = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
        writer = FilePipeWriter.Create(path, options);
        return readEnd;
    }

    private long? Block(ManualResetEventSlim isCalled)
    {
        isCalled.Set();
        _gate.Wait(TestContext.Current.CancellationToken);
        return null;
    }
}
