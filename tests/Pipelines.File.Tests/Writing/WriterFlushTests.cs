namespace FilePipelines.Tests;

/// <summary>When a flush completes, what it waits for, and what a cancellation leaves.</summary>
public sealed class WriterFlushTests : FileTests
{
    public WriterFlushTests() => Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");

    [Fact]
    public async Task FlushAsync_BelowThePauseThreshold_CompletesWhileTheWriteIsStuck()
    {
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = gate.Hold };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { PauseWriterThreshold = 1000 });
        ValueTask<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(999), _stop);
        Assert.True(flush.IsCompletedSuccessfully);
        Assert.Equal(0, writer.UnflushedBytes);
        Assert.Equal(999, writer.Position);
        gate.Open();
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(999), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task FlushAsync_AtThePauseThreshold_CompletesWhenNoMoreThanTheResumeThresholdIsLeft()
    {
        using SemaphoreSlim gate = new(0);
        ScriptedCalls calls = new()
        {
            OnWrite = _ =>
            {
                gate.Wait(TestContext.Current.CancellationToken);
                return 100;
            },
        };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { PauseWriterThreshold = 1000, ResumeWriterThreshold = 800 });
        Task<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(1000), _stop).AsTask();
        gate.Release();
        await Task.Delay(50, _stop);
        Assert.False(flush.IsCompleted);
        gate.Release();
        FlushResult result = await flush.WaitAsync(Eventually.Limit, _stop);
        Assert.False(result.IsCanceled);
        gate.Release(1000);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(1000), File.ReadAllBytes(_folder.File("f")));
    }

    [Theory]
    [InlineData(FlushGuarantee.Written, 1 << 20)]
    [InlineData(FlushGuarantee.WriteBehind, 0)]
    public async Task FlushAsync_Written_CompletesWithTheBytesInTheFile(FlushGuarantee guarantee, long pause)
    {
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { FlushGuarantee = guarantee, PauseWriterThreshold = pause });
        for (int i = 0; i < 50; i++)
        {
            await writer.WriteAsync(Pattern.Bytes(7, i * 7), _stop);
            Assert.Equal((i + 1) * 7, new FileInfo(path).Length);
        }

        await writer.CompleteAsync();
    }

    [Fact]
    public async Task FlushAsync_ManySmallOnes_GoOutInFewWrites()
    {
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = call => call == 1 ? gate.Hold(call) : null };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        for (int i = 0; i < 1000; i++)
        {
            await writer.WriteAsync(Pattern.Bytes(10, i * 10), _stop);
        }

        gate.Open();
        await writer.CompleteAsync();
        Assert.Equal(2, calls.Writes);
        Assert.Equal(Pattern.Bytes(10_000), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task FlushAsync_Durable_OneSyncServesAllThatWaitAndAFlushDuringItNeedsTheNext()
    {
        using SemaphoreSlim syncs = new(0);
        using ManualResetEventSlim isSyncing = new();
        ScriptedCalls calls = new()
        {
            OnSync = _ =>
            {
                isSyncing.Set();
                syncs.Wait(TestContext.Current.CancellationToken);
                return null;
            },
        };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        Task<FlushResult> first = writer.WriteAsync(Pattern.Bytes(10), _stop).AsTask();
        isSyncing.Wait(_stop);

        // These three come while the first sync runs: it does not cover them, the second covers them all.
        Task<FlushResult>[] later = [.. Enumerable.Range(1, 3).Select(i => writer.WriteAsync(Pattern.Bytes(10, i * 10), _stop).AsTask())];
        syncs.Release();
        await first.WaitAsync(Eventually.Limit, _stop);
        await Task.Delay(50, _stop);
        Assert.DoesNotContain(later, t => t.IsCompleted);
        syncs.Release();
        await Task.WhenAll(later).WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(2, calls.Syncs);

        // Nothing new is written: no further sync.
        await writer.FlushAsync(_stop);
        await writer.CompleteAsync();
        Assert.Equal(2, calls.Syncs);
    }

    [Fact]
    public async Task CancelPendingFlush_WithNothingPending_CancelsTheNextFlushOnly()
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        writer.CancelPendingFlush();
        Assert.True((await writer.WriteAsync(Pattern.Bytes(100), _stop)).IsCanceled);
        Assert.False((await writer.WriteAsync(Pattern.Bytes(100, 100), _stop)).IsCanceled);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(200), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task CompleteAsync_DurableAfterACanceledFlush_SyncsWhatThatFlushed()
    {
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = call => call == 1 ? gate.Hold(call) : null };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        Task<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(100), _stop).AsTask();
        writer.CancelPendingFlush();
        Assert.True((await flush).IsCanceled);
        Task completing = writer.CompleteAsync().AsTask();
        Assert.False(completing.IsCompleted);
        gate.Open();
        await completing.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(1, calls.Syncs);
    }

    [Fact]
    public async Task FlushAsync_ContinuationThatBlocks_DoesNotHoldUpTheDrain()
    {
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = call => call == 1 ? gate.Hold(call) ?? 600 : 100 };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { PauseWriterThreshold = 1000, ResumeWriterThreshold = 500 });
        Task opening = Task.Run(
            async () =>
            {
                await Task.Delay(50, _stop);
                gate.Open();
            },
            _stop);

        // Without the context of the test runner, which would take the continuation elsewhere.
        await Task.Run(
            async () =>
            {
                await writer.WriteAsync(Pattern.Bytes(1000), _stop);
                Assert.True(SpinWait.SpinUntil(() => calls.BytesWritten == 1000, Eventually.Limit), $"{calls.BytesWritten} bytes");
            },
            _stop);
        await opening;
        await writer.CompleteAsync();
    }

    [Theory]
    [InlineData(300_000, 300_000)]
    [InlineData(3_000_000, 1024 * 1024)]
    public async Task WriteAsync_LargeWithACanceledToken_KeepsWhatItCopies(int length, int kept)
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"));
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => writer.WriteAsync(Pattern.Bytes(length), new CancellationToken(canceled: true)).AsTask());
        Assert.Equal(kept, writer.Position);
        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes(kept).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    [Fact]
    public async Task WriteAsync_LargeOnesBetweenSmallOnesInACallersPool_AreWrittenInOrderAndThePoolHasItsMemoryBack()
    {
        CheckedPool pool = new();
        ScriptedCalls calls = new() { OnWrite = call => call % 3 == 0 ? 100_000 : null };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { Pool = pool, MinimumBufferSize = 5000 });
        int index = 0;
        foreach (int length in new[] { 10, 2_000_000, 3000, 300_000, 262_144, 1, 4_000_000, 700_000 })
        {
            await writer.WriteAsync(Pattern.Bytes(length, index), _stop);
            index += length;
            Assert.Equal(index, writer.Position);
        }

        await writer.CompleteAsync();
        Assert.Equal(0, pool.Rented);
        Assert.True(Pattern.Bytes(index).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    [Fact]
    public async Task FlushAsync_OneOfSeveralCanceledByItsToken_LeavesTheOthersWaiting()
    {
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = call => call == 1 ? gate.Hold(call) : null };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        CancellationTokenSource[] sources = [new(), new(), new()];
        Task<FlushResult>[] flushes = [.. sources.Select(
            (source, i) => writer.WriteAsync(Pattern.Bytes(10, i * 10), source.Token).AsTask())];
        await sources[1].CancelAsync();
        OperationCanceledException e =
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => flushes[1].WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(sources[1].Token, e.CancellationToken);
        Assert.False(flushes[0].IsCompleted || flushes[2].IsCompleted);
        gate.Open();
        Assert.False((await flushes[0].WaitAsync(Eventually.Limit, _stop)).IsCanceled);
        Assert.False((await flushes[2].WaitAsync(Eventually.Limit, _stop)).IsCanceled);
        Array.ForEach(sources, s => s.Dispose());
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(30), File.ReadAllBytes(_folder.File("f")));
    }
}
