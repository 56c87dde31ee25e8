using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using FilePipelines.Child;
using Pipelines.File;
using Pipelines.File.IO;
using Pipelines.File.Reading;

namespace FilePipelines.Tests;

/// <summary>Reads that are given up while the system call underneath goes on, and readers that end under a pending read.</summary>
public sealed class ReaderCancellationTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private readonly ManualResetEventSlim _gate = new();
    private readonly ManualResetEventSlim _isReading = new();

    public ReaderCancellationTests() => Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");

    public void Dispose()
    {
        _gate.Set();
        _folder.Dispose();
    }

    [Fact]
    public async Task CancelPendingRead_WhileTheCallIsBlocked_ReturnsAtOnceAndTheBytesComeLater()
    {
        FilePipeReader reader = StuckReader(10_000);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        _isReading.Wait(_stop);
        reader.CancelPendingRead();
        ReadResult canceled = await read.WaitAsync(Eventually.Limit, _stop);
        Assert.True(canceled.IsCanceled && canceled.Buffer.IsEmpty && !canceled.IsCompleted);
        reader.AdvanceTo(canceled.Buffer.End);
        Task<ReadResult> again = reader.ReadAsync(_stop).AsTask();
        await Task.Delay(20, _stop);
        Assert.False(again.IsCompleted);
        _gate.Set();
        ReadResult result = await again.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(10_000, result.Buffer.Length);
        Assert.Equal(-1, Pattern.FirstDifference(System.Buffers.BuffersExtensions.ToArray(result.Buffer)));
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task ReadAsync_TokenCanceledWhileTheCallIsBlocked_ThrowsWithThatTokenAndTheBytesComeLater()
    {
        FilePipeReader reader = StuckReader(10_000);
        using CancellationTokenSource source = new();
        Task<ReadResult> read = reader.ReadAsync(source.Token).AsTask();
        _isReading.Wait(_stop);
        await source.CancelAsync();
        OperationCanceledException e =
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => read.WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(source.Token, e.CancellationToken);
        Assert.False(reader.TryRead(out _));
        _gate.Set();
        Assert.Equal(10_000, (await reader.ReadAsync(_stop)).Buffer.Length);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task ReadAsync_TokenOfTheReadBeforeComesLate_DoesNotEndTheNextRead()
    {
        FilePipeReader reader = StuckReader(10_000);
        using CancellationTokenSource first = new();
        using CancellationTokenSource second = new();
        PolledRead read = new(reader.ReadAsync(first.Token));
        Thread canceling = new(first.Cancel);
        PolledRead next;
        lock (BufferOf(reader))
        {
            // The token has called the reader and waits for its lock, or, on a slow machine, comes later still, and finds that nobody waits
            // for it.
            canceling.Start();
            _ = SpinWait.SpinUntil(() => (canceling.ThreadState & ThreadState.WaitSleepJoin) != 0, Eventually.Limit);
            reader.CancelPendingRead();
            Assert.True(read.TakeResult().IsCanceled);
            next = new(reader.ReadAsync(second.Token));
        }

        Assert.True(canceling.Join(Eventually.Limit));
        Assert.False(next.IsCompleted);
        _gate.Set();
        await Eventually.TrueAsync(() => next.IsCompleted);
        Assert.Equal(10_000, next.TakeResult().Buffer.Length);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task CancelPendingRead_WithNothingPending_CancelsTheNextReadOnly()
    {
        FilePipeReader reader = FilePipeReader.Create(_folder.File("f", Pattern.Bytes(100)));
        reader.CancelPendingRead();
        Assert.True((await reader.ReadAsync(_stop)).IsCanceled);
        Assert.False((await reader.ReadAsync(_stop)).IsCanceled);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task CancelPendingRead_WhileTheCallerIsInTheCallThatWouldWait_EndsTheReadAtOnce()
    {
        FilePipeReader? reader = null;
        ScriptedCalls calls = new()
        {
            OnReadNoWait = call =>
            {
                if (call == 1)
                {
                    reader!.CancelPendingRead();
                }

                return -Libc.EAGAIN;
            },
            OnRead = _ => Block(),
        };
        reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        ReadResult canceled = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.True(canceled.IsCanceled && canceled.Buffer.IsEmpty && !canceled.IsCompleted);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        _gate.Set();
        ReadResult result = await read.WaitAsync(Eventually.Limit, _stop);
        Assert.False(result.IsCanceled);
        Assert.Equal(1000, result.Buffer.Length);
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task ReadAtLeastAsync_CanceledBetweenTwoCallsThatDoNotWait_EndsThere(bool byToken)
    {
        FilePipeReader? reader = null;
        using CancellationTokenSource source = new();
        ScriptedCalls calls = new()
        {
            OnReadNoWait = call =>
            {
                if (call == 3 && byToken)
                {
                    source.Cancel();
                }
                else if (call == 3)
                {
                    reader!.CancelPendingRead();
                }

                return 100;
            },
        };
        reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        if (byToken)
        {
            await Assert.ThrowsAnyAsync<OperationCanceledException>(async () => await reader.ReadAtLeastAsync(1000, source.Token));
        }
        else
        {
            ReadResult canceled = await reader.ReadAtLeastAsync(1000, source.Token);
            Assert.True(canceled.IsCanceled);
            Assert.Equal(300, canceled.Buffer.Length);
        }

        Assert.Equal(3, calls.ReadsNoWait);
        ReadResult result = await reader.ReadAtLeastAsync(1000, _stop);
        Assert.Equal(Pattern.Bytes(1000), System.Buffers.BuffersExtensions.ToArray(result.Buffer));
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(false, false)]
    [InlineData(false, true)]
    [InlineData(true, false)]
    [InlineData(true, true)]
    public async Task ReadAtLeastAsync_CanceledAfterSomeBytesCame_TheNextReadGivesThemAtOnce(bool byToken, bool withReadAhead)
    {
        using Fifo fifo = Fifo.Create(_folder);
        FilePipeReader reader = FilePipeReader.Create(fifo.Path, new() { PauseReadAheadThreshold = withReadAhead ? 10_000 : 0 });
        using CancellationTokenSource source = new();

        // The caller has looked at the first bytes, and wants more of them.
        fifo.Write(Pattern.Bytes(50));
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.Start, result.Buffer.End);
        Task<ReadResult> read = reader.ReadAtLeastAsync(1000, source.Token).AsTask();
        fifo.Write(Pattern.Bytes(100, 50));

        // They are taken from the FIFO, and not enough.
        await Eventually.TrueAsync(() => fifo.IsEmpty);
        await Task.Delay(20, _stop);
        Assert.False(read.IsCompleted);
        if (byToken)
        {
            await source.CancelAsync();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => read.WaitAsync(Eventually.Limit, _stop));
        }
        else
        {
            reader.CancelPendingRead();
            ReadResult canceled = await read.WaitAsync(Eventually.Limit, _stop);
            Assert.True(canceled.IsCanceled);

            // Or a thread has them that has not told of them yet.
            Assert.True(canceled.Buffer.Length is 50 or 150, $"{canceled.Buffer.Length} bytes");
        }

        // Nobody has looked at the new ones.
        result = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(Pattern.Bytes(150), System.Buffers.BuffersExtensions.ToArray(result.Buffer));
        reader.AdvanceTo(result.Buffer.End);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task Complete_DuringAPendingRead_EndsItAndKeepsMemoryAndHandleUntilTheCallReturns()
    {
        CheckedPool pool = new();
        FilePipeReader reader = StuckReader(10_000, pool);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        _isReading.Wait(_stop);
        reader.Complete();
        await Assert.ThrowsAsync<InvalidOperationException>(() => read.WaitAsync(Eventually.Limit, _stop));
        Assert.True(pool.Rented > 0);
        Assert.False(reader.OpenedFile.Handle.IsClosed);
        _gate.Set();
        Assert.True(SpinWait.SpinUntil(() => pool.Rented == 0 && reader.OpenedFile.Handle.IsClosed, Eventually.Limit));
        Assert.Equal(0, pool.ReturnedTwice);
        Assert.Equal(0, pool.ReturnedPinned);
    }

    [Fact]
    public async Task ReadAsync_WhileOneIsPending_ThrowsAndLeavesThatOneAlone()
    {
        FilePipeReader reader = StuckReader(1000);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await reader.ReadAsync(_stop));
        Assert.Throws<InvalidOperationException>(() => reader.TryRead(out _));
        _gate.Set();
        Assert.Equal(1000, (await read.WaitAsync(Eventually.Limit, _stop)).Buffer.Length);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task AdvanceTo_WhileACanceledReadGoesOn_DoesNotReuseItsMemory()
    {
        // The first read is short and leaves room in its segment, which the second, stuck one fills.
        ScriptedCalls calls = new()
        {
            OnReadNoWait = call => call == 1 ? 100 : -Libc.EAGAIN,
            OnRead = _ => Block(),
        };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(5000)), new() { BufferSize = 1000 });
        ReadResult first = await reader.ReadAsync(_stop);
        Assert.Equal(100, first.Buffer.Length);
        reader.AdvanceTo(first.Buffer.Start, first.Buffer.End);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        _isReading.Wait(_stop);
        reader.CancelPendingRead();
        ReadResult canceled = await read;
        Assert.Equal(100, canceled.Buffer.Length);
        reader.AdvanceTo(canceled.Buffer.End);
        Assert.Equal(100, reader.Position);
        _gate.Set();
        byte[] rest = new byte[4900];
        await reader.AsStream().ReadExactlyAsync(rest, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(rest, 100));
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task CancelAndCompleteFromOtherThreads_AtAnyMoment_LoseNothingAndLeakNothing()
    {
        byte[] content = Pattern.Bytes(200_000);
        string path = _folder.File("f", content);
        CheckedPool pool = new();
        Random random = new(12345);
        for (int round = 0; round < 150; round++)
        {
            // Every second read waits a moment on another thread.
            ScriptedCalls calls = new() { OnReadNoWait = call => call % 2 == 0 ? -Libc.EAGAIN : 5000, OnRead = _ => 7000 };
            FilePipeReader reader = calls.Read(
                path, new() { BufferSize = 1000, Pool = pool, PauseReadAheadThreshold = round % 3 == 0 ? 20_000 : 0 });
            using CancellationTokenSource stop = new();
            Task canceller = Task.Run(
                () =>
                {
                    // Now and then only: a read that finds itself canceled every time never gets to read.
                    for (int i = 0; i < 50 && !stop.IsCancellationRequested; i++)
                    {
                        reader.CancelPendingRead();
                        Thread.SpinWait(i * 40);
                        Thread.Yield();
                    }
                },
                _stop);
            long index = 0;
            long completeAt = round % 2 == 0 ? long.MaxValue : random.Next(0, 200_000);
            bool isCompleting = false;
            try
            {
                while (true)
                {
                    ReadResult result = await reader.ReadAsync(_stop);
                    foreach (ReadOnlyMemory<byte> memory in result.Buffer)
                    {
                        // Complete gives the caller's pool its memory back, also that of this buffer.
                        Assert.True(Pattern.FirstDifference(memory.Span, index) < 0 || Volatile.Read(ref isCompleting));
                        index += memory.Length;
                    }

                    reader.AdvanceTo(result.Buffer.End);
                    if (result.IsCompleted)
                    {
                        break;
                    }

                    if (index >= completeAt)
                    {
                        Volatile.Write(ref isCompleting, true);
                        _ = Task.Run(() => reader.Complete(), _stop);
                    }
                }

                Assert.Equal(content.Length, index);
            }
            catch (Exception e) when (isCompleting && e is InvalidOperationException or ArgumentOutOfRangeException)
            {
            }

            reader.Complete();
            await stop.CancelAsync();
            await canceller;
        }

        Assert.True(SpinWait.SpinUntil(() => pool.Rented == 0, Eventually.Limit), $"{pool.Rented} pieces of memory were not given back");
        Assert.Equal(0, pool.ReturnedTwice);
        Assert.Equal(0, pool.ReturnedPinned);
    }

    [Fact]
    public async Task CopyToAsync_CanceledWhileTheCallIsBlocked_EndsAtOnceAndLosesNothing()
    {
        FilePipeReader reader = StuckReader(10_000);
        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 0));
        using CancellationTokenSource source = new();
        Task copy = reader.CopyToAsync(pipe.Writer, source.Token);
        _isReading.Wait(_stop);
        await source.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => copy.WaitAsync(Eventually.Limit, _stop));
        _gate.Set();
        await reader.CopyToAsync(pipe.Writer, _stop);
        await pipe.Writer.CompleteAsync();
        MemoryStream copied = new();
        await pipe.Reader.CopyToAsync(copied, _stop);
        Assert.Equal(Pattern.Bytes(10_000), copied.ToArray());
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task Complete_DuringACopy_EndsItAtOnceAndReleasesEverythingWhenTheCallReturns()
    {
        CheckedPool pool = new();
        ScriptedCalls calls = new() { OnReadNoWait = call => call == 1 ? 1000 : -Libc.EAGAIN, OnRead = _ => Block() };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(10_000)), new() { Pool = pool });
        reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
        Task copy = reader.CopyToAsync(new Pipe().Writer, _stop);
        _isReading.Wait(_stop);
        reader.Complete();
        await Assert.ThrowsAsync<InvalidOperationException>(() => copy.WaitAsync(Eventually.Limit, _stop));
        Assert.False(reader.OpenedFile.Handle.IsClosed);
        _gate.Set();
        await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.True(reader.OpenedFile.Handle.IsClosed);
        Assert.Equal(0, pool.Rented);
        Assert.Equal(0, pool.ReturnedTwice);
    }

    /// <summary>A reader whose every read is handed over and stuck there until the gate opens.</summary>
    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_buffer")]
    private static extern ref ReadBuffer BufferOf(FilePipeReader reader);

    private FilePipeReader StuckReader(int length, CheckedPool? pool = null)
    {
        ScriptedCalls calls = new() { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = _ => Block() };
        return calls.Read(_folder.File("f", Pattern.Bytes(length)), new() { Pool = pool });
    }

    private long? Block()
    {
        _isReading.Set();
        _gate.Wait(TestContext.Current.CancellationToken);
        return null;
    }
}
