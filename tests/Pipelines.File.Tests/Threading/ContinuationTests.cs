using System.Runtime.CompilerServices;

namespace FilePipelines.Tests;

/// <summary>
/// Where a wait goes on: in the awaiter's SynchronizationContext or TaskScheduler unless ConfigureAwait(false) says otherwise, however it
/// ends.
/// </summary>
public sealed class ContinuationTests : FileTests
{
    private readonly Gate _gate = new();

    public ContinuationTests() => Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");

    /// <summary>What ends a wait.</summary>
    public enum Ending
    {
        BackEnd,
        Cancel,
        Token,
        Complete,
        Failure,
    }

    public override void Dispose()
    {
        _gate.Open();
        base.Dispose();
    }

    public static MatrixTheoryData<Ending, bool> ReaderEndings { get; } = new(Enum.GetValues<Ending>(), [true, false]);

    public static MatrixTheoryData<Ending, bool> WriterEndings { get; }
        = new(Enum.GetValues<Ending>().Except([Ending.Complete]), [true, false]);

    [Theory]
    [MemberData(nameof(ReaderEndings))]
    public async Task ReadAsync_UnderASynchronizationContext_GoesOnThereUnlessConfiguredOtherwise(
        Ending end, bool continueOnCapturedContext)
    {
        ScriptedCalls calls = new() { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = _ => Block(end) };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        using CancellationTokenSource source = new();
        using PumpContext context = new();
        Task<bool> isThere = context.RunAsync(
            async () =>
            {
                ValueTask<ReadResult> read = reader.ReadAsync(source.Token);
                Assert.False(read.IsCompleted);
                try
                {
                    await new Asking<ReadResult>(
                        read.ConfigureAwait(continueOnCapturedContext),
                        () => EndElsewhere(end, reader.CancelPendingRead, source, () => reader.Complete()));
                }
                catch (Exception e) when (e is OperationCanceledException or InvalidOperationException or IOException)
                {
                }

                return context.IsCurrentThread;
            });
        Assert.Equal(continueOnCapturedContext, await isThere.WaitAsync(Eventually.Limit, _stop));
        _gate.Open();
        await reader.CompleteAsync();
    }

    [Theory]
    [MemberData(nameof(WriterEndings))]
    public async Task FlushAsync_UnderASynchronizationContext_GoesOnThereUnlessConfiguredOtherwise(
        Ending end, bool continueOnCapturedContext)
    {
        ScriptedCalls calls = new() { OnWrite = _ => Block(end) };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        using CancellationTokenSource source = new();
        using PumpContext context = new();
        Task<bool> isThere = context.RunAsync(
            async () =>
            {
                ValueTask<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(1000), source.Token);
                Assert.False(flush.IsCompleted);
                try
                {
                    await new Asking<FlushResult>(
                        flush.ConfigureAwait(continueOnCapturedContext),
                        () => EndElsewhere(end, writer.CancelPendingFlush, source, () => { }));
                }
                catch (Exception e) when (e is OperationCanceledException or IOException)
                {
                }

                return context.IsCurrentThread;
            });
        Assert.Equal(continueOnCapturedContext, await isThere.WaitAsync(Eventually.Limit, _stop));
        _gate.Open();
        _ = await Record.ExceptionAsync(async () => await writer.CompleteAsync());
    }

    [Theory]
    [MemberData(nameof(WriterEndings))]
    public async Task ReadAndFlush_UnderATaskScheduler_GoOnThereUnlessConfiguredOtherwise(Ending end, bool continueOnCapturedContext)
    {
        ScriptedCalls calls = new() { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = _ => Block(end), OnWrite = _ => Block(end) };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        FilePipeWriter writer = calls.Write(_folder.File("g"), new() { FlushGuarantee = FlushGuarantee.Written });
        using CancellationTokenSource source = new();
        TaskScheduler scheduler = new ConcurrentExclusiveSchedulerPair().ExclusiveScheduler;
        Task<int> timesThere = Task.Factory.StartNew(
            async () =>
            {
                int there = 0;
                ValueTask<ReadResult> read = reader.ReadAsync(source.Token);
                ValueTask<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(1000), source.Token);
                Assert.False(read.IsCompleted || flush.IsCompleted);
                try
                {
                    await new Asking<ReadResult>(read.ConfigureAwait(continueOnCapturedContext), () => EndElsewhere(
                        end,
                        () =>
                        {
                            reader.CancelPendingRead();
                            writer.CancelPendingFlush();
                        },
                        source,
                        () => { }));
                }
                catch (Exception e) when (e is OperationCanceledException or IOException)
                {
                }

                there += TaskScheduler.Current == scheduler ? 1 : 0;
                try
                {
                    await flush.ConfigureAwait(continueOnCapturedContext);
                }
                catch (Exception e) when (e is OperationCanceledException or IOException)
                {
                }

                return there + (TaskScheduler.Current == scheduler ? 1 : 0);
            },
            _stop,
            TaskCreationOptions.None,
            scheduler).Unwrap();
        Assert.Equal(continueOnCapturedContext ? 2 : 0, await timesThere.WaitAsync(Eventually.Limit, _stop));
        _gate.Open();
        await reader.CompleteAsync();
        _ = await Record.ExceptionAsync(async () => await writer.CompleteAsync());
    }

    [Fact]
    public async Task CompleteAsync_UnderASynchronizationContext_GoesOnThere()
    {
        ScriptedCalls calls =
            new() { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = _ => Block(Ending.BackEnd), OnWrite = _ => Block(Ending.BackEnd) };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        FilePipeWriter writer = calls.Write(_folder.File("g"));
        using PumpContext context = new();
        Task<bool> isThere = context.RunAsync(
            async () =>
            {
                Task read = reader.ReadAsync(_stop).AsTask();
                await writer.WriteAsync(Pattern.Bytes(1000), _stop);
                ValueTask released = reader.CompleteAsync();
                ValueTask written = writer.CompleteAsync();
                Assert.False(released.IsCompleted || written.IsCompleted);
                _gate.Open();
                await released;
                bool isThere = context.IsCurrentThread;
                await written;
                await Assert.ThrowsAsync<InvalidOperationException>(() => read);
                return isThere && context.IsCurrentThread;
            });
        Assert.True(await isThere.WaitAsync(Eventually.Limit, _stop));
    }

    private void EndElsewhere(Ending end, Action cancel, CancellationTokenSource source, Action complete) => Task.Run(
        () =>
        {
            switch (end)
            {
                case Ending.Cancel:
                    cancel();
                    break;
                case Ending.Token:
                    source.Cancel();
                    break;
                case Ending.Complete:
                    complete();
                    break;
                default:
                    _gate.Open();
                    break;
            }
        },
        CancellationToken.None);

    private long? Block(Ending end)
    {
        _gate.Wait();
        return end == Ending.Failure ? -Libc.EIO : null;
    }

    /// <summary>A wait that is ended when its awaiter has asked to be told, not before: that would go on where it is.</summary>
    private readonly struct Asking<T>(ConfiguredValueTaskAwaitable<T> wait, Action end) : ICriticalNotifyCompletion
    {
        public bool IsCompleted => false;

        public Asking<T> GetAwaiter() => this;

        public T GetResult() => wait.GetAwaiter().GetResult();

        public void OnCompleted(Action continuation) => UnsafeOnCompleted(continuation);

        public void UnsafeOnCompleted(Action continuation)
        {
            wait.GetAwaiter().UnsafeOnCompleted(continuation);
            end();
        }
    }
}
