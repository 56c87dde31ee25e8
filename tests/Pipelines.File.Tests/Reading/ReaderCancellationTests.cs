using System.Runtime.CompilerServices;
using Pipelines.File.Reading;

namespace FilePipelines.Tests;

/// <summary>Reads that are given up while the system call underneath goes on, and readers that end under a pending read.</summary>
public sealed class ReaderCancellationTests : FileTests
{
    private readonly Gate _gate = new();

    public ReaderCancellationTests() => Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");

    public override void Dispose()
    {
        _gate.Open();
        base.Dispose();
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task ReadAsync_CanceledWhileTheCallIsBlocked_EndsAtOnceAndTheBytesComeLater(bool byToken)
    {
        FilePipeReader reader = StuckReader(10_000);
        using CancellationTokenSource source = new();
        Task<ReadResult> read = reader.ReadAsync(source.Token).AsTask();
        _gate.WaitForCall();
        if (byToken)
        {
            await source.CancelAsync();
            OperationCanceledException e =
                await Assert.ThrowsAnyAsync<OperationCanceledException>(() => read.WaitAsync(Eventually.Limit, _stop));
            Assert.Equal(source.Token, e.CancellationToken);
            Assert.False(reader.TryRead(out _));
        }
        else
        {
            reader.CancelPendingRead();
            ReadResult canceled = await read.WaitAsync(Eventually.Limit, _stop);
            Assert.True(canceled.IsCanceled && canceled.Buffer.IsEmpty && !canceled.IsCompleted);
            reader.AdvanceTo(canceled.Buffer.End);
        }

        Task<ReadResult> again = reader.ReadAsync(_stop).AsTask();
        await Task.Delay(20, _stop);
        Assert.False(again.IsCompleted);
        _gate.Open();
        ReadResult result = await again.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(Pattern.Bytes(10_000), result.Buffer.ToArray());
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
        _gate.Open();
        await Eventually.TrueAsync(() => next.IsCompleted);
        Assert.Equal(10_000, next.TakeResult().Buffer.Length);
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
            OnRead = _gate.Hold,
        };
        reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        ReadResult canceled = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.True(canceled.IsCanceled && canceled.Buffer.IsEmpty && !canceled.IsCompleted);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        _gate.Open();
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
        Assert.Equal(Pattern.Bytes(1000), result.Buffer.ToArray());
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
        Assert.Equal(Pattern.Bytes(150), result.Buffer.ToArray());
        reader.AdvanceTo(result.Buffer.End);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task ReadAsync_WhileOneIsPending_ThrowsAndLeavesThatOneAlone()
    {
        FilePipeReader reader = StuckReader(1000);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await reader.ReadAsync(_stop));
        Assert.Throws<InvalidOperationException>(() => reader.TryRead(out _));
        _gate.Open();
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
            OnRead = _gate.Hold,
        };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(5000)), new() { BufferSize = 1000 });
        ReadResult first = await reader.ReadAsync(_stop);
        Assert.Equal(100, first.Buffer.Length);
        reader.AdvanceTo(first.Buffer.Start, first.Buffer.End);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        _gate.WaitForCall();
        reader.CancelPendingRead();
        ReadResult canceled = await read;
        Assert.Equal(100, canceled.Buffer.Length);
        reader.AdvanceTo(canceled.Buffer.End);
        Assert.Equal(100, reader.Position);
        _gate.Open();
        byte[] rest = new byte[4900];
        await reader.AsStream().ReadExactlyAsync(rest, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(rest, 100));
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task CopyToAsync_CanceledWhileTheCallIsBlocked_EndsAtOnceAndLosesNothing()
    {
        FilePipeReader reader = StuckReader(10_000);
        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 0));
        using CancellationTokenSource source = new();
        Task copy = reader.CopyToAsync(pipe.Writer, source.Token);
        _gate.WaitForCall();
        await source.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => copy.WaitAsync(Eventually.Limit, _stop));
        _gate.Open();
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
        ScriptedCalls calls = new() { OnReadNoWait = call => call == 1 ? 1000 : -Libc.EAGAIN, OnRead = _gate.Hold };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(10_000)), new() { Pool = pool });
        reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
        Task copy = reader.CopyToAsync(new Pipe().Writer, _stop);
        _gate.WaitForCall();
        reader.Complete();
        await Assert.ThrowsAsync<InvalidOperationException>(() => copy.WaitAsync(Eventually.Limit, _stop));
        Assert.False(reader.OpenedFile.Handle.IsClosed);
        _gate.Open();
        await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.True(reader.OpenedFile.Handle.IsClosed);
        Assert.Equal(0, pool.Rented);
        Assert.Equal(0, pool.ReturnedTwice);
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_buffer")]
    private static extern ref ReadBuffer BufferOf(FilePipeReader reader);

    /// <summary>A reader whose every read is handed over and stuck there until the gate opens.</summary>
    private FilePipeReader StuckReader(int length, CheckedPool? pool = null)
    {
        ScriptedCalls calls = new() { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = _gate.Hold };
        return calls.Read(_folder.File("f", Pattern.Bytes(length)), new() { Pool = pool });
    }
}
