using Pipelines.File.Reading;

namespace FilePipelines.Tests;

/// <summary>The race between the call that returns and its end, and cancellation in every state of an operation.</summary>
[SupportedOSPlatform("windows")]
public sealed class OverlappedRaceTests : FileTests
{
    public OverlappedRaceTests() => Assert.SkipUnless(OperatingSystem.IsWindows(), "Overlapped I/O is of Windows; .ci/wine runs it.");

    public enum Moment
    {
        BeforeTheCall,
        AfterTheCall,
        WhilePending,
    }

    public enum Ending
    {
        CancelPendingRead,
        Token,
        Complete,
    }

    public static MatrixTheoryData<CallFinish, bool> Finishes { get; } = new(Enum.GetValues<CallFinish>(), [true, false]);

    public static MatrixTheoryData<Moment, Ending, CallFinish> Cancellations { get; }
        = new(Enum.GetValues<Moment>(), Enum.GetValues<Ending>(), Enum.GetValues<CallFinish>());

    [Theory]
    [MemberData(nameof(Finishes))]
    public async Task ReadAsync_HoweverTheCallFinishes_GivesEveryByteOnce(CallFinish how, bool readsAhead)
    {
        const int Length = 3_000_000;
        string path = _folder.File("f", Pattern.Bytes(Length));
        ScriptedWindowsCalls calls = new() { OnRead = _ => how };
        FilePipeReader reader = calls.Read(path, new() { BufferSize = 1000, PauseReadAheadThreshold = readsAhead ? 1 << 20 : 0 });
        await ReadAllAsync(reader, Length, wasCanceled: () => false);
        Assert.True(calls.Reads >= Length / ReadBuffer.BytesPerRead);
        await CloseAsync(reader, calls, path);
    }

    [Theory]
    [MemberData(nameof(Finishes))]
    public async Task WriteAsync_HoweverTheCallFinishes_WritesEveryByteOnce(CallFinish how, bool waits)
    {
        string path = _folder.File("f");
        ScriptedWindowsCalls calls = new() { OnWrite = _ => how };
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = waits ? FlushGuarantee.Written : FlushGuarantee.WriteBehind });
        for (int index = 0; index < 300_000; index += 3000)
        {
            await writer.WriteAsync(Pattern.Bytes(3000, index), _stop);
        }

        await writer.CompleteAsync();
        calls.CloseSecond();
        Assert.Equal(Pattern.Bytes(300_000), File.ReadAllBytes(path));
    }

    /// <summary>Every way to finish, in random order, while another thread cancels: the hammer.</summary>
    [Theory]
    [InlineData(1, 0), InlineData(3, 400_000)]
    public async Task ReadAsync_RandomFinishesAndCancellations_GivesEveryByteOnce(int seed, long readAhead)
    {
        int length = Rounds.Of(4_000_000, 20_000_000);
        string path = _folder.File("f", Pattern.Bytes(length));
        CallFinish[] ways = [CallFinish.Real, CallFinish.Real, CallFinish.AtOnce, CallFinish.CompletionFirst];
        ScriptedWindowsCalls calls = new() { OnRead = call => ways[((call * 7919) + seed) % 31 % ways.Length] };
        using CheckedPool smallPieces = new(10_000);
        FilePipeReader reader = calls.Read(path, new() { Pool = smallPieces, BufferSize = 16_384, PauseReadAheadThreshold = readAhead });
        using CancellationTokenSource end = new();
        Task canceling = Task.Run(
            async () =>
            {
                Random random = new(seed);
                while (!end.IsCancellationRequested)
                {
                    reader.CancelPendingRead();
                    if (random.Next(4) == 0)
                    {
                        await Task.Yield();
                    }

                    Thread.SpinWait(random.Next(3000));
                }
            },
            _stop);
        try
        {
            await ReadAllAsync(reader, length, wasCanceled: () => true);
        }
        finally
        {
            await end.CancelAsync();
            await canceling;
        }

        await CloseAsync(reader, calls, path);
    }

    [Theory]
    [MemberData(nameof(Cancellations))]
    public async Task ReadAsync_EndedAtAnyMoment_ReleasesTheHandleAndLosesNothing(Moment moment, Ending ending, CallFinish how)
    {
        string path = _folder.File("f", Pattern.Bytes(600_000));
        ScriptedWindowsCalls calls = new() { OnRead = _ => how };
        FilePipeReader reader = calls.Read(path);
        using CancellationTokenSource token = new();
        void End()
        {
            switch (ending)
            {
                case Ending.CancelPendingRead:
                    reader.CancelPendingRead();
                    break;
                case Ending.Token:
                    token.Cancel();
                    break;
                default:
                    reader.Complete();
                    break;
            }
        }

        int shots = 1;
        void EndOnce()
        {
            if (Interlocked.Decrement(ref shots) == 0)
            {
                End();
            }
        }

        calls.BeforeRead = moment == Moment.BeforeTheCall ? EndOnce : null;
        calls.AfterRead = moment == Moment.AfterTheCall ? EndOnce : null;
        ValueTask<ReadResult> reading = reader.ReadAsync(token.Token);
        if (moment == Moment.WhilePending)
        {
            EndOnce();
        }

        try
        {
            // Whatever the read gives by now, it is the beginning of the file.
            ReadResult result = await reading.AsTask().WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(-1, Pattern.FirstDifference(result.Buffer.ToArray()));
            if (ending != Ending.Complete)
            {
                reader.AdvanceTo(result.Buffer.Start, result.Buffer.Start);
            }
        }
        catch (OperationCanceledException) when (ending == Ending.Token)
        {
        }
        catch (InvalidOperationException) when (ending == Ending.Complete)
        {
        }

        calls.BeforeRead = calls.AfterRead = null;
        if (ending != Ending.Complete)
        {
            await ReadAllAsync(reader, 600_000, wasCanceled: () => true);
        }

        await CloseAsync(reader, calls, path);
    }

    [Fact]
    public async Task ReadAhead_CompletedAtOnce_ReleasesTheHandleEveryTime()
    {
        string path = _folder.File("f", Pattern.Bytes(2_000_000));
        for (int i = 0; i < 200; i++)
        {
            FilePipeReader reader = FilePipeReader.Create(path, new() { PauseReadAheadThreshold = 500_000, Share = FileShare.ReadWrite });
            ReadResult result = await reader.ReadAsync(_stop);
            reader.AdvanceTo(result.Buffer.GetPosition(i), result.Buffer.End);
            Thread.SpinWait(i * 20);
            reader.Complete();
        }

        await Eventually.FreeAsync(path);
    }

    private async Task ReadAllAsync(FilePipeReader reader, int length, Func<bool> wasCanceled)
    {
        long index = 0;
        bool isCompleted = false;
        while (!isCompleted)
        {
            ReadResult result = await reader.ReadAsync(_stop);
            Assert.True(!result.IsCanceled || wasCanceled());
            foreach (ReadOnlyMemory<byte> piece in result.Buffer)
            {
                Assert.Equal(-1, Pattern.FirstDifference(piece.Span, index));
                index += piece.Length;
            }

            isCompleted = result.IsCompleted;
            reader.AdvanceTo(result.Buffer.End);
        }

        Assert.Equal(length, index);
    }

    private static async Task CloseAsync(FilePipeReader reader, ScriptedWindowsCalls calls, string path)
    {
        await reader.CompleteAsync();
        calls.CloseSecond();
        await Eventually.FreeAsync(path);
    }
}
