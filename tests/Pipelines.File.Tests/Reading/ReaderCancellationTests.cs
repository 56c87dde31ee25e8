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
    [InlineData(false), InlineData(true)]
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
        ScriptedCalls calls = new() { OnReadNoWait = call => call == 1 ? 100 : -Libc.EAGAIN, OnRead = _gate.Hold };
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
        await reader.AsStream().ReadExactlyAsync(rest, _stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(rest, 100));
        await reader.CompleteAsync();
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_buffer")]
    private static extern ref ReadBuffer BufferOf(FilePipeReader reader);

    /// <summary>A reader whose every read is handed over and stuck there until the gate opens.</summary>
    private FilePipeReader StuckReader(int length)
        => new ScriptedCalls { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = _gate.Hold }.Read(_folder.File("f", Pattern.Bytes(length)));
}
