namespace FileDevicesTests;

/// <summary>A disk that does not answer: what waits for it can be given up, and nothing else waits.</summary>
[Trait("Category", StressTime.Category)]
public sealed class StalledDiskTests
{
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    [Theory]
    [InlineData("ext4")]
    [InlineData("xfs")]
    [InlineData("btrfs")]
    public async Task Disk_DoesNotAnswer_FlushesCanBeCanceledAndOtherDisksGoOn(string kind)
    {
        Laboratory.SkipUnlessPossible();
        using TempFolder elsewhere = new();
        using Laboratory laboratory = Laboratory.Open(FileSystemKind.Of(kind));
        using ManualResetEventSlim answers = new();
        using ManualResetEventSlim isAsked = new();
        FilePipeWriterOptions durable = new() { FlushGuarantee = FlushGuarantee.Durable };
        FilePipeWriter stalled = FilePipeWriter.Create(Path.Combine(laboratory.Folder, "stalled"), durable);
        FilePipeWriter aborted = FilePipeWriter.Create(Path.Combine(laboratory.Folder, "aborted"), durable);
        await stalled.WriteAsync(Pattern.Bytes(1000), _stop);
        await aborted.WriteAsync(Pattern.Bytes(1000), _stop);
        laboratory.Disk.Answer = request =>
        {
            isAsked.Set();
            answers.Wait();
            return DeviceAnswer.Done;
        };
        try
        {
            Task<System.IO.Pipelines.FlushResult> waiting = stalled.WriteAsync(Pattern.Bytes(1000, 1000), _stop).AsTask();
            Task<System.IO.Pipelines.FlushResult> dropped = aborted.WriteAsync(Pattern.Bytes(1000, 1000), _stop).AsTask();
            isAsked.Wait(_stop);
            Assert.False(waiting.IsCompleted || dropped.IsCompleted);

            stalled.CancelPendingFlush();
            Assert.True((await waiting.WaitAsync(Eventually.Limit, _stop)).IsCanceled);
            using CancellationTokenSource given = new();
            Task<System.IO.Pipelines.FlushResult> second = stalled.FlushAsync(given.Token).AsTask();
            Assert.False(second.IsCompleted);
            await given.CancelAsync();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => second.WaitAsync(Eventually.Limit, _stop));
            aborted.Abort();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => dropped.WaitAsync(Eventually.Limit, _stop));

            // Another disk, with a sync of its own.
            FilePipeWriter other = FilePipeWriter.Create(elsewhere.File("other"), durable);
            await other.WriteAsync(Pattern.Bytes(1000), _stop).AsTask().WaitAsync(Eventually.Limit, _stop);
            await other.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        }
        finally
        {
            answers.Set();
        }

        await stalled.FlushAsync(_stop);
        laboratory.Disk.Acknowledge("stalled", 2000);
        await stalled.CompleteAsync();
        await Eventually.TrueAsync(() => OpenHandles.Below(laboratory.Folder) == 0);
        laboratory.Unmount();
        DeviceEvent[] events = laboratory.Disk.Recorded;
        using PowerCut cut = new(laboratory.Kind, laboratory.Before, events);
        await cut.CutAsync(events.Length, new Random(1), (recovered, _) =>
        {
            Assert.Equal(-1, Pattern.FirstDifference(File.ReadAllBytes(Path.Combine(recovered, "stalled"))));
            return Task.CompletedTask;
        });
    }
}
