using System.IO.Pipelines;
using FilePipelinesChild;
using Pipelines.File;

namespace FilePipelinesTests;

/// <summary>
/// A write of the caller's own memory behind bytes of the writer's, at each of its system calls, and what ends it then. The system takes
/// the bytes in four calls: the writer's own first, then the caller's in three.
/// </summary>
public sealed class WriterBorrowedOrderTests : IDisposable
{
    private const int Own = 10;
    private const int Part = 100_000;
    private const int Length = 3 * Part;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public WriterBorrowedOrderTests() => Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");

    public static MatrixTheoryData<int, string> Cancellations { get; } =
        new([1, 2, 3, 4], ["token", "CancelPendingFlush", "both", "Abort", "Abort after the token", "Complete after the token"]);

    public static MatrixTheoryData<int, string, FlushGuarantee> Ends { get; } =
        new([1, 2, 3, 4], ["Complete", "CompleteAsync", "with an error", "DisposeAsync"],
            [FlushGuarantee.WriteBehind, FlushGuarantee.Durable]);

    public void Dispose() => _folder.Dispose();

    /// <summary>Only a call that has the caller's memory is waited for. What it has written is a prefix, and written once.</summary>
    [Theory]
    [MemberData(nameof(Cancellations))]
    public async Task WriteAsync_CanceledAtACall_EndsWithItAndKeepsAPrefix(int at, string how)
    {
        using ManualResetEventSlim gate = new();
        using CancellationTokenSource token = new();
        ScriptedCalls calls = Calls(at, gate);
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        byte[] source = Pattern.Bytes(Length, Own);
        Task<FlushResult> write = BeginWrite(writer, source, token.Token);
        await Eventually.TrueAsync(() => calls.Writes == at);
        Task? end = null;
        if (how is "token" or "both" or "Abort after the token" or "Complete after the token")
        {
            await token.CancelAsync();
        }

        if (how is "CancelPendingFlush" or "both")
        {
            writer.CancelPendingFlush();
        }

        if (how is "Abort" or "Abort after the token")
        {
            writer.Abort();
        }

        if (how is "Complete after the token")
        {
            end = writer.CompleteAsync().AsTask();
        }

        if (at > 1)
        {
            Assert.False(write.IsCompleted);
            gate.Set();
        }

        FlushResult result = default;
        Exception? thrown = await Record.ExceptionAsync(async () => result = await write.WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(at > 1 ? at : 1, calls.Writes);
        Array.Clear(source);
        gate.Set();
        Assert.True(result.IsCanceled || thrown is OperationCanceledException, $"{thrown}");

        // Of one call, the other cancellation may be for the next one.
        if (how is "token" or "CancelPendingFlush")
        {
            Pattern.Fill(writer.GetSpan(Own)[..Own], Own + ((at - 1) * Part));
            writer.Advance(Own);
            Assert.False((await writer.FlushAsync(FlushGuarantee.Written, _stop)).IsCanceled);
            Assert.Equal((2 * Own) + ((at - 1) * Part), writer.Position);
        }

        _ = await Record.ExceptionAsync(() => (end ?? writer.CompleteAsync().AsTask()).WaitAsync(Eventually.Limit, _stop));
        long length = Own + ((at - 1) * Part) + (how is "token" or "CancelPendingFlush" ? Own : 0);
        Assert.Equal(length, writer.Position);
        Assert.True(Pattern.Bytes((int)length).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    [Theory]
    [MemberData(nameof(Ends))]
    public async Task WriteAsync_WriterIsCompletedAtACall_IsWrittenWhole(int at, string how, FlushGuarantee guarantee)
    {
        using ManualResetEventSlim gate = new();
        ScriptedCalls calls = Calls(at, gate);
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = guarantee });
        byte[] source = Pattern.Bytes(Length, Own);
        Task<FlushResult> write = BeginWrite(writer, source, _stop);
        await Eventually.TrueAsync(() => calls.Writes == at);
        Task end = how switch
        {
            "Complete" => Task.Factory.StartNew(() => writer.Complete(), _stop, TaskCreationOptions.LongRunning, TaskScheduler.Default),
            "CompleteAsync" => writer.CompleteAsync().AsTask(),
            "with an error" => writer.CompleteAsync(new IOException("the caller's")).AsTask(),
            _ => writer.DisposeAsync().AsTask(),
        };
        gate.Set();
        FlushResult result = await write.WaitAsync(Eventually.Limit, _stop);
        Assert.False(result.IsCanceled || result.IsCompleted);
        Array.Clear(source);
        await end.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(Own + Length, writer.Position);
        Assert.True(Pattern.Bytes(Own + Length).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    /// <summary>A call of the caller's memory that is short lets the sync of an earlier flush go first, which nobody waits for.</summary>
    [Theory]
    [InlineData("token")]
    [InlineData("token before")]
    [InlineData("Abort")]
    public async Task WriteAsync_CanceledAtTheSyncBetweenTwoCalls_EndsAtOnceAndKeepsAPrefix(string how)
    {
        using ManualResetEventSlim first = new();
        using ManualResetEventSlim second = new();
        using ManualResetEventSlim sync = new();
        using CancellationTokenSource token = new();
        ScriptedCalls calls = new()
        {
            OnWrite = call =>
            {
                (call == 1 ? first : second).Wait(Eventually.Limit);
                return Part;
            },
            OnSync = _ =>
            {
                sync.Wait(Eventually.Limit);
                return null;
            },
        };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        Pattern.Fill(writer.GetSpan(Own)[..Own], 0);
        writer.Advance(Own);
        Task<FlushResult> flush = writer.FlushAsync(FlushGuarantee.Durable, _stop).AsTask();
        byte[] source = Pattern.Bytes(Length, Own);
        Task<FlushResult> write = writer.WriteAsync(source, token.Token).AsTask();
        first.Set();
        await Eventually.TrueAsync(() => calls.Writes == 2);
        if (how == "token before")
        {
            await token.CancelAsync();
        }

        second.Set();
        await Eventually.TrueAsync(() => calls.Syncs == 1);
        if (how == "token")
        {
            await token.CancelAsync();
        }
        else if (how == "Abort")
        {
            writer.Abort();
        }

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => write.WaitAsync(Eventually.Limit, _stop));
        Array.Clear(source);
        Assert.Equal(1, calls.Syncs);
        sync.Set();
        Exception? thrown = await Record.ExceptionAsync(() => flush.WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(how == "Abort", thrown is OperationCanceledException);
        await writer.CompleteAsync();
        Assert.Equal(2, calls.Writes);
        Assert.Equal(Own + Part, writer.Position);
        Assert.True(Pattern.Bytes(Own + Part).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    private static ScriptedCalls Calls(int at, ManualResetEventSlim gate) => new()
    {
        OnWrite = call =>
        {
            if (call == at)
            {
                gate.Wait(Eventually.Limit);
            }

            return Part;
        },
    };

    private static Task<FlushResult> BeginWrite(FilePipeWriter writer, byte[] source, CancellationToken token)
    {
        Pattern.Fill(writer.GetSpan(Own)[..Own], 0);
        writer.Advance(Own);
        return writer.WriteAsync(source, token).AsTask();
    }
}
