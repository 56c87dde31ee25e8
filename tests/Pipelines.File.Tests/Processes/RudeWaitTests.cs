using System.Buffers;
using System.IO.Pipelines;
using FilePipelines.Child;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>Callers whose own code throws, or who do in the middle of one operation what ends another.</summary>
public sealed class RudeWaitTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public RudeWaitTests() => ChildProcess.SkipUnlessLinux();

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task Complete_ContextOfThePendingReadThrows_ReleasesHandleAndMemory()
    {
        using Fifo fifo = Fifo.Create(_folder);
        CheckedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(fifo.Path, new() { Pool = pool });
        Await(new ThrowingContext(), () => reader.ReadAsync(_stop));
        Assert.Throws<NotSupportedException>(() => reader.Complete());
        await Eventually.TrueAsync(() => OpenHandles.Of(fifo.Path) == 1 && pool.Rented == 0);
    }

    [Fact]
    public async Task Abort_ContextOfThePendingFlushThrows_EndsTheOtherFlushesAndReleasesTheHandle()
    {
        string path = Fifo.Make(_folder);
        using SafeFileHandle readEnd = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Open, PauseWriterThreshold = 0 });
        Await(new ThrowingContext(), () => writer.WriteAsync(Pattern.Bytes(500_000), _stop));
        ValueTask<FlushResult> second = writer.WriteAsync(Pattern.Bytes(10), _stop);
        writer.Abort();
        await Assert.ThrowsAsync<OperationCanceledException>(() => second.AsTask().WaitAsync(Eventually.Limit, _stop));
        await writer.CompleteAsync();
        Assert.Equal(1, OpenHandles.Of(path));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task CancelPendingRead_DuringTheLastCallOfACopy_CancelsTheCopyOrTheNextRead(bool isHandedOver)
    {
        string path = _folder.File("f", Pattern.Bytes(1000));
        FilePipeReader? reader = null;
        int isCanceled = 0;
        ScriptedCalls calls = new()
        {
            OnReadNoWait = _ => isHandedOver ? -11 : null,
            OnRead = _ =>
            {
                if (reader!.Position == 1000 && Interlocked.Exchange(ref isCanceled, 1) == 0)
                {
                    reader.CancelPendingRead();
                }

                return null;
            },
        };
        reader = calls.Read(path);
        using MemoryStream target = new();
        Exception? error = await Record.ExceptionAsync(() => reader.CopyToAsync(PipeWriter.Create(target), _stop));
        ReadResult next = await reader.ReadAsync(_stop);
        Assert.True(error is OperationCanceledException || next.IsCanceled, "The cancellation is lost.");
        Assert.False(error is OperationCanceledException && next.IsCanceled);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task Abort_OfTheDestinationDuringACopy_KeepsItsMemoryFromThePoolUntilTheReadEnds()
    {
        using Fifo fifo = Fifo.Create(_folder);
        CheckedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(fifo.Path);
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("copy"), new() { Pool = pool });
        Task copying = reader.CopyToAsync(writer, _stop);
        Assert.Throws<InvalidOperationException>(() => writer.Complete());
        writer.Abort();
        Assert.Equal(0, pool.ReturnedPinned);
        fifo.Write("late"u8);
        Assert.NotNull(await Record.ExceptionAsync(() => copying.WaitAsync(Eventually.Limit, _stop)));
        await reader.CompleteAsync();
        await writer.CompleteAsync();
        Assert.Equal(0, pool.ReturnedPinned);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Complete_OfTheDestinationAfterACanceledCopy_GivesItsMemoryBack(bool fails)
    {
        CheckedPool pool = new();
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("copy"), new() { Pool = pool });
        if (fails)
        {
            FilePipeReader reader = new ScriptedCalls { OnReadNoWait = _ => -11, OnRead = _ => -5 }.Read(
                _folder.File("f", Pattern.Bytes(1000)));
            await Assert.ThrowsAsync<IOException>(() => reader.CopyToAsync(writer, _stop));
            await reader.CompleteAsync();
        }
        else
        {
            using Fifo fifo = Fifo.Create(_folder);
            FilePipeReader reader = FilePipeReader.Create(fifo.Path);
            Task copying = reader.CopyToAsync(writer, _stop);
            reader.CancelPendingRead();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => copying);
            await reader.CompleteAsync();
        }

        // Another thread than the one that asked for the memory.
        await Task.Factory.StartNew(() => writer.Complete(), _stop, TaskCreationOptions.LongRunning, TaskScheduler.Default);
        Assert.Equal(0, pool.Rented);
    }

    [Fact]
    public async Task DisposeAsync_AfterAbort_EndsWhenTheFileIsClosed()
    {
        using ManualResetEventSlim goesOn = new();
        using ManualResetEventSlim began = new();
        string path = _folder.File("f");
        FilePipeWriter writer = new ScriptedCalls
        {
            OnWrite = _ =>
            {
                began.Set();
                goesOn.Wait();
                return null;
            },
        }.Write(path);
        await writer.WriteAsync(Pattern.Bytes(100), _stop);
        began.Wait(_stop);
        writer.Abort();
        ValueTask disposing = writer.DisposeAsync();
        bool wasEarly = disposing.IsCompleted;
        goesOn.Set();
        await disposing;
        Assert.False(wasEarly);
        Assert.Equal(0, OpenHandles.Of(path));
    }

    [Fact]
    public async Task FlushAsync_DurableWhileOthersWriteOn_IsNotPutOffForEver()
    {
        FilePipeWriter? writer = null;
        bool isWaiting = false;
        int writes = 0;
        using ManualResetEventSlim flushed = new();
        ScriptedCalls fed = new()
        {
            OnSync = _ =>
            {
                isWaiting = false;
                return null;
            },
            OnWrite = _ =>
            {
                // Somebody flushes more while every write runs, and takes turns with the caller below.
                flushed.Wait(CancellationToken.None);
                if (isWaiting && ++writes < 1000)
                {
                    ValueTask<FlushResult> other = writer!.WriteAsync(Pattern.Bytes(10), CancellationToken.None);
                    Assert.True(other.IsCompletedSuccessfully);
                }

                return null;
            },
        };
        writer = fed.Write(_folder.File("f"));
        isWaiting = true;
        writer.GetSpan(10);
        writer.Advance(10);
        ValueTask<FlushResult> durable = writer.FlushAsync(FlushGuarantee.Durable, _stop);
        flushed.Set();
        await durable;
        await writer.CompleteAsync();
        Assert.InRange(writes, 1, 10);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Advance_AfterTheWriterWasEndedElsewhere_ThrowsOrLeavesItToTheNextCall(bool aborts)
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"));
        writer.GetSpan(100).Fill(1);
        await Task.Factory.StartNew(aborts ? writer.Abort : writer.Dispose, _stop, TaskCreationOptions.LongRunning, TaskScheduler.Default);
        await Assert.ThrowsAsync<InvalidOperationException>(async () =>
        {
            writer.Advance(100);
            Assert.True(aborts);
            await writer.FlushAsync(_stop);
        });
        Assert.Equal(0, new FileInfo(_folder.File("f")).Length);
    }

    private static void Await<T>(SynchronizationContext context, Func<ValueTask<T>> begin)
    {
        SynchronizationContext? before = SynchronizationContext.Current;
        SynchronizationContext.SetSynchronizationContext(context);
        try
        {
            Assert.False(AwaitAsync(begin).IsCompleted);
        }
        finally
        {
            SynchronizationContext.SetSynchronizationContext(before);
        }
    }

    private static async Task AwaitAsync<T>(Func<ValueTask<T>> begin) => await begin();

    private sealed class ThrowingContext : SynchronizationContext
    {
        public override void Post(SendOrPostCallback d, object? state) => throw new NotSupportedException("This window is closed.");
    }
}
