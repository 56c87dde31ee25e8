namespace FilePipelines.Devices.Tests;

/// <summary>A disk that does not answer: what waits for it can be given up, and nothing else waits.</summary>
[Trait("Category", StressTime.Category)]
[Collection(Alone.Name)]
public sealed class StalledDiskTests
{
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    /// <summary>
    /// First no request is answered, then each only after an unrelated work item of the application's pool has run, which has few threads.
    /// </summary>
    [Theory]
    [InlineData("ext4")]
    [InlineData("xfs")]
    [InlineData("btrfs")]
    public async Task Disk_IsStalledAndThenSlow_HoldsNeitherCallersNorThePool(string kind)
    {
        Laboratory.SkipUnlessPossible();
        using Laboratory laboratory = Laboratory.Open(FileSystemKind.Of(kind));
        FilePipeWriterOptions[] ways =
        [
            new() { FlushGuarantee = FlushGuarantee.Durable },
            new() { FlushGuarantee = FlushGuarantee.Written },
            new() { FlushGuarantee = FlushGuarantee.Written, FileOptions = FileOptions.WriteThrough },
            new() { FlushGuarantee = FlushGuarantee.Written, Caching = FileCaching.DropBehind },
            new() { FlushGuarantee = FlushGuarantee.Durable, Replace = true },
            new(),
        ];
        string[] paths = [.. Enumerable.Range(0, 5 * ways.Length).Select(i => Path.Combine(laboratory.Folder, $"{i}"))];
        FilePipeWriter[] writers = [.. paths.Select((path, i) => FilePipeWriter.Create(path, ways[i % ways.Length]))];
        foreach (FilePipeWriter writer in writers)
        {
            await writer.WriteAsync(Pattern.Bytes(1000), _stop);
        }

        using FewPoolThreads few = new();
        using ManualResetEventSlim answers = new();
        TaskCompletionSource isAsked = new(TaskCreationOptions.RunContinuationsAsynchronously);
        bool isHeld = false;
        laboratory.Disk.Answer = _ =>
        {
            isAsked.TrySetResult();
            answers.Wait();
            using ManualResetEventSlim hasRun = new();
            ThreadPool.UnsafeQueueUserWorkItem(static ran => ran.Set(), hasRun, preferLocal: false);
            isHeld |= !hasRun.Wait(Eventually.Limit);
            return DeviceAnswer.Done;
        };
        try
        {
            // The first one is durable, and asks the disk. What nobody has written to for a while is not trusted to be fast.
            Task first = writers[0].WriteAsync(Pattern.Bytes(1000, 1000), _stop).AsTask();
            await isAsked.Task.WaitAsync(Eventually.Limit, _stop);
            await Task.Delay(20, _stop);
            Task[] flushes = await Task.Run(
                () => (Task[])[first, .. writers.Skip(1).Select(writer => writer.WriteAsync(Pattern.Bytes(1000, 1000), _stop).AsTask())],
                _stop).WaitAsync(Eventually.Limit, _stop);
            Task[] ends = await Task.Run(() => (Task[])[.. writers.Select(static writer => writer.CompleteAsync().AsTask())], _stop)
                .WaitAsync(Eventually.Limit, _stop);
            Assert.False(first.IsCompleted || ends[0].IsCompleted);
            answers.Set();
            await Task.WhenAll([.. flushes, .. ends]).WaitAsync(Eventually.Limit, _stop);
        }
        finally
        {
            answers.Set();
        }

        Assert.False(isHeld);
        Assert.All(paths, static path => Assert.Equal(-1, Pattern.FirstDifference(File.ReadAllBytes(path))));
        Assert.All(paths, static path => Assert.Equal(2000, new FileInfo(path).Length));
    }

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
