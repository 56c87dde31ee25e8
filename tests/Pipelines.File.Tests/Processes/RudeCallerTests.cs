using System.Diagnostics.CodeAnalysis;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using FilePipelines.Child;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelines.Tests;

/// <summary>Callers that take a result before they are told of it, look at it twice, or advance twice.</summary>
[SuppressMessage("Reliability", "CA2012:Use ValueTasks correctly", Justification = "Using them wrongly is what is tested.")]
[SuppressMessage("Usage", "xUnit1031:Do not use blocking task operations in test method",
    Justification = "GetResult of what is not pending, or has to throw.")]
public sealed class RudeCallerTests : IDisposable
{
    private const int Rounds = 10_000;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private int _continued;

    public void Dispose() => _folder.Dispose();

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

    [Theory]
    [InlineData(Rudeness.TakesWithoutBeingTold)]
    [InlineData(Rudeness.TakesWithoutBeingToldUnsafely)]
    [InlineData(Rudeness.Polls)]
    [InlineData(Rudeness.AsksAfterwards)]
    [InlineData(Rudeness.TakesOnAnotherThread)]
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
    [InlineData(Rudeness.TakesWithoutBeingTold)]
    [InlineData(Rudeness.TakesWithoutBeingToldUnsafely)]
    [InlineData(Rudeness.Polls)]
    [InlineData(Rudeness.AsksAfterwards)]
    [InlineData(Rudeness.TakesOnAnotherThread)]
    public async Task CancelPendingFlush_OfARudeCallersFlushOnAFullFifo_GivesEachResultOnceAndTellsOnce(Rudeness rudeness)
    {
        string path = Fifo.Make(_folder);
        using SafeFileHandle readEnd = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
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
        using SafeFileHandle readEnd = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
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
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Unix system calls.");
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
    [InlineData(0)]
    [InlineData(1_000_000)]
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
    public async Task UnflushedBytes_AfterCompleteWithAnException_IsNone()
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"));
        Pattern.Fill(writer.GetSpan(100)[..100], 0);
        writer.Advance(100);
        Assert.Equal(100, writer.UnflushedBytes);
        await writer.CompleteAsync(new InvalidOperationException("the source broke"));
        Assert.Equal(0, writer.UnflushedBytes);
        Assert.Empty(File.ReadAllBytes(_folder.File("f")));
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
}
