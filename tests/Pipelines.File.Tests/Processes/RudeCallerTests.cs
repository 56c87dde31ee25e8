using System.Diagnostics.CodeAnalysis;

namespace FilePipelines.Tests;

/// <summary>
/// Callers that take a result before they are told of it, look at it twice, or advance twice; whose own code throws, or who do in the
/// middle of one operation what ends another.
/// </summary>
[SuppressMessage("Reliability", "CA2012:Use ValueTasks correctly", Justification = "Using them wrongly is what is tested.")]
[SuppressMessage("Usage", "xUnit1031:Do not use blocking task operations in test method",
    Justification = "GetResult of what is not pending, or has to throw.")]
public sealed class RudeCallerTests : FileTests
{
    private const int Rounds = 10_000;

    private int _continued;

    /// <summary>What a rude caller does with a wait between its begin and its end.</summary>
    public enum Rudeness
    {
        /// <summary>Asks to be told, and takes the result without waiting for that.</summary>
        TakesWithoutBeingTold,

        /// <summary>The same, without the execution context, as an async method does.</summary>
        TakesWithoutBeingToldUnsafely,

        /// <summary>Never asks to be told.</summary>
        Polls,

        /// <summary>Asks to be told after the result is there, and takes it at once.</summary>
        AsksAfterwards,

        /// <summary>Takes the result from another thread, which polls, while asking to be told here.</summary>
        TakesOnAnotherThread,
    }

    public static TheoryData<Rudeness> Ways => [.. Enum.GetValues<Rudeness>()];

    [Theory]
    [MemberData(nameof(Ways))]
    public async Task CancelPendingRead_OfARudeCallersReadOnAnIdleFifo_GivesEachResultOnceAndTellsOnce(Rudeness rudeness)
    {
        using Fifo fifo = Fifo.Create(_folder);
        FilePipeReader reader = FilePipeReader.Create(fifo.Path);
        int told = Play(rudeness, () => reader.ReadAsync(CancellationToken.None), reader.CancelPendingRead, result => result.IsCanceled);
        await Eventually.TrueAsync(() => Volatile.Read(ref _continued) >= told);

        // The reader is as good as new.
        fifo.Write([1, 2, 3]);
        Assert.Equal(3, (await reader.ReadAsync(_stop)).Buffer.Length);
        await reader.CompleteAsync();
        Assert.Equal(told, _continued);
    }

    [Theory]
    [MemberData(nameof(Ways))]
    public async Task CancelPendingFlush_OfARudeCallersFlushOnAFullFifo_GivesEachResultOnceAndTellsOnce(Rudeness rudeness)
    {
        string path = Fifo.Make(_folder);
        using SafeFileHandle readEnd = Fifo.OpenBothWays(path);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Open, FlushGuarantee = FlushGuarantee.Written });
        Task<FlushResult> first = writer.WriteAsync(Pattern.Bytes(200_000), _stop).AsTask();
        writer.CancelPendingFlush();
        Assert.True((await first).IsCanceled);
        int told = Play(rudeness, () => writer.FlushAsync(CancellationToken.None), writer.CancelPendingFlush, result => result.IsCanceled);
        await Eventually.TrueAsync(() => Volatile.Read(ref _continued) >= told);

        // Nothing is lost by it.
        using FileStream source = new(readEnd, FileAccess.Read, 1);
        byte[] content = new byte[200_000];
        await source.ReadExactlyAsync(content, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(content));
        await writer.CompleteAsync();
        Assert.Equal(told, _continued);
    }

    [Fact]
    public async Task GetResult_OfAReadThatIsPendingOrWasTaken_ThrowsAndHarmsNothing()
    {
        using Fifo fifo = Fifo.Create(_folder);
        FilePipeReader reader = FilePipeReader.Create(fifo.Path);
        ValueTaskAwaiter<ReadResult> awaiter = reader.ReadAsync(CancellationToken.None).GetAwaiter();
        Assert.Throws<InvalidOperationException>(() => awaiter.GetResult());
        fifo.Write([1, 2, 3]);
        await Eventually.TrueAsync(() => awaiter.IsCompleted);
        ReadResult result = awaiter.GetResult();
        Assert.Equal(3, result.Buffer.Length);
        Assert.Throws<InvalidOperationException>(() => awaiter.GetResult());
        reader.AdvanceTo(result.Buffer.End);

        // Nor does the old awaiter get what the next read waits for.
        ValueTask<ReadResult> next = reader.ReadAsync(CancellationToken.None);
        Assert.Throws<InvalidOperationException>(() => awaiter.GetResult());
        Assert.Throws<InvalidOperationException>(() => awaiter.OnCompleted(() => { }));
        fifo.Write([4]);
        Assert.Equal(1, (await next).Buffer.Length);
        await reader.CompleteAsync();
    }

    /// <summary>A write of several pieces, whose task is not that of one flush: it throws, or waits.</summary>
    [Fact]
    public async Task GetResult_OfALongWriteThatIsPending_HarmsNothing()
    {
        string path = Fifo.Make(_folder);
        using SafeFileHandle readEnd = Fifo.OpenBothWays(path);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Open });
        byte[] source = Pattern.Bytes(3_000_000);
        ValueTaskAwaiter<FlushResult> awaiter = writer.WriteAsync(source, CancellationToken.None).GetAwaiter();
        Task<Exception?> early = Task.Run(() => Record.Exception(() => awaiter.GetResult()), _stop);
        using FileStream reader = new(readEnd, FileAccess.Read, 1);
        byte[] content = new byte[source.Length];
        await reader.ReadExactlyAsync(content, _stop);
        await Eventually.TrueAsync(() => awaiter.IsCompleted);
        Assert.True(await early.WaitAsync(Eventually.Limit, _stop) is null or InvalidOperationException);
        Assert.Equal(-1, Pattern.FirstDifference(content));
        await writer.CompleteAsync();
    }

    [Fact]
    public async Task GetResult_OfASharedReadThatIsPending_DoesNotGiveItsTaskToAnother()
    {
        using SemaphoreSlim let = new(0);
        ScriptedCalls calls = new()
        {
            OnReadNoWait = static _ => -Libc.EAGAIN,
            OnRead = _ =>
            {
                let.Wait(_stop);
                return null;
            },
        };
        string path = _folder.File("f", Pattern.Bytes(1000));
        using SharedFile file = new(FileOpening.Choose(FilePipeBackend.UnixThreads, File.OpenHandle(path), path, calls: calls), path);
        ValueTask<int> rude = file.ReadAsync(new Pipe().Writer, 0, 1000);
        Task<Exception?> early = Task.Run(() => Record.Exception(() => rude.GetAwaiter().GetResult()), _stop);
        await Task.WhenAny(early, Task.Delay(20, _stop));
        ValueTask<int> next = file.ReadAsync(new Pipe().Writer, 0, 500);
        let.Release(2);
        Assert.Equal(500, await next.AsTask().WaitAsync(Eventually.Limit, _stop));
        Assert.Null(await early.WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(1000, await rude);
    }

    [Fact]
    public async Task GetResult_OfATappedReadThatIsPending_HarmsNothing()
    {
        using Fifo fifo = Fifo.Create(_folder);
        PipeReader reader = FilePipeReader.Create(fifo.Path).Tap(static _ => { });
        ValueTask<ReadResult> rude = reader.ReadAsync(_stop);
        Task<Exception?> early = Task.Run(() => Record.Exception(() => rude.GetAwaiter().GetResult()), _stop);
        await Task.WhenAny(early, Task.Delay(20, _stop));
        fifo.Write([1, 2, 3]);
        Assert.Null(await early.WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(3, (await rude).Buffer.Length);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task OnCompleted_Twice_ThrowsAtTheSecond()
    {
        using Fifo fifo = Fifo.Create(_folder);
        FilePipeReader reader = FilePipeReader.Create(fifo.Path);
        ValueTaskAwaiter<ReadResult> awaiter = reader.ReadAsync(CancellationToken.None).GetAwaiter();
        awaiter.OnCompleted(() => Interlocked.Increment(ref _continued));
        Assert.Throws<InvalidOperationException>(() => awaiter.OnCompleted(() => Interlocked.Increment(ref _continued)));
        fifo.Write([1]);
        await Eventually.TrueAsync(() => awaiter.IsCompleted);
        Assert.Equal(1, awaiter.GetResult().Buffer.Length);
        await Eventually.TrueAsync(() => _continued == 1);
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(0), InlineData(1_000_000)]
    public async Task AdvanceTo_TwiceWithTheSameEnd_Throws(long readAhead)
    {
        // The read-ahead has nothing left to read, so that nothing comes in between.
        FilePipeReader reader = FilePipeReader.Create(
            _folder.File("f", Pattern.Bytes(10_000)), new() { PauseReadAheadThreshold = readAhead, Length = 10_000 });
        ReadResult result = await reader.ReadAtLeastAsync(10_000, _stop);
        reader.AdvanceTo(result.Buffer.End);
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(result.Buffer.End));
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(result.Buffer.End, result.Buffer.End));
        Assert.Equal(10_000, reader.Position);
        Assert.True((await reader.ReadAsync(_stop)).IsCompleted);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task AdvanceTo_TwiceWithTheSameEndOfAFifosBuffer_Throws()
    {
        using Fifo fifo = Fifo.Create(_folder);
        FilePipeReader reader = FilePipeReader.Create(fifo.Path);
        fifo.Write([1, 2, 3]);
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.End);
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(result.Buffer.End));

        // Also where bytes that came later lie in the very same memory.
        fifo.Write([4, 5, 6]);
        ReadResult next = await reader.ReadAsync(_stop);
        Assert.Equal(3, reader.Position);
        Assert.Equal(3, next.Buffer.Length);
        await reader.CompleteAsync();
    }

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
        using SafeFileHandle readEnd = Fifo.OpenBothWays(path);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Open, PauseWriterThreshold = 0 });
        Await(new ThrowingContext(), () => writer.WriteAsync(Pattern.Bytes(500_000), _stop));
        ValueTask<FlushResult> second = writer.WriteAsync(Pattern.Bytes(10), _stop);
        writer.Abort();
        await Assert.ThrowsAsync<OperationCanceledException>(() => second.AsTask().WaitAsync(Eventually.Limit, _stop));
        await writer.CompleteAsync();
        Assert.Equal(1, OpenHandles.Of(path));
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
    [InlineData(false), InlineData(true)]
    public async Task Complete_OfTheDestinationAfterACanceledCopy_GivesItsMemoryBack(bool fails)
    {
        ChildProcess.SkipUnlessLinux();
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
    public async Task FlushAsync_DurableWhileOthersWriteOn_IsNotPutOffForEver()
    {
        ChildProcess.SkipUnlessLinux();
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
    [InlineData(false), InlineData(true)]
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

    /// <summary>Plays the rounds, and returns how often a continuation is to run.</summary>
    private int Play<T>(Rudeness rudeness, Func<ValueTask<T>> begin, Action cancel, Func<T, bool> isCanceled)
    {
        Action onCompleted = () => Interlocked.Increment(ref _continued);
        for (int round = 0; round < Rounds; round++)
        {
            ValueTask<T> task = begin();
            ValueTaskAwaiter<T> awaiter = task.GetAwaiter();
            Assert.False(awaiter.IsCompleted);
            switch (rudeness)
            {
                case Rudeness.TakesWithoutBeingTold:
                    awaiter.OnCompleted(onCompleted);
                    cancel();
                    break;
                case Rudeness.TakesWithoutBeingToldUnsafely:
                    awaiter.UnsafeOnCompleted(onCompleted);
                    cancel();
                    break;
                case Rudeness.Polls:
                    cancel();
                    break;
                case Rudeness.AsksAfterwards:
                    cancel();
                    awaiter.OnCompleted(onCompleted);
                    break;
                case Rudeness.TakesOnAnotherThread:
                    // The two threads meet at the object that both use.
                    Task canceling = Task.Run(cancel, CancellationToken.None);
                    awaiter.OnCompleted(onCompleted);
                    SpinWait.SpinUntil(() => awaiter.IsCompleted);
                    Assert.True(isCanceled(awaiter.GetResult()));
                    canceling.Wait(CancellationToken.None);
                    continue;
            }

            Assert.True(awaiter.IsCompleted);
            Assert.True(isCanceled(awaiter.GetResult()));
        }

        return rudeness == Rudeness.Polls ? 0 : Rounds;
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
