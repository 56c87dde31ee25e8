using System.Collections.Concurrent;

namespace FilePipelines.Tests;

/// <summary>No code of a caller's runs on the threads that watch and look at followed files, or that wait.</summary>
public sealed class FollowThreadTests : FileTests
{
    private const int Waits = 20;

    private readonly ConcurrentBag<string> _offenders = [];

    [Theory]
    [InlineData(0, 86_400_000)]
    [InlineData(100, 86_400_000)]
    [InlineData(0, 5)]
    public async Task ReadAsync_FileGrows_ACallersPoolIsUsedOnTheApplicationsThreadsOnly(long readAhead, int interval)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() || interval < 1000, "Only Linux tells of growth between two looks.");
        using GrowingFile file = new(_folder.File("log"), "one\n");
        HostilePool pool = new() { OnCall = _ => CheckThread() };
        await using (FilePipeReader reader = FilePipeReader.Create(file.Path, Options(readAhead, interval, pool)))
        {
            await GrowingFile.ExpectAsync(reader, "one\n");
            for (int i = 0; i < Waits; i++)
            {
                Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
                file.Append("two\n");
                ReadResult result = await GrowingFile.Bounded(waiting);
                reader.AdvanceTo(result.Buffer.End);
            }
        }

        Assert.Empty(_offenders);
        await Eventually.TrueAsync(() => pool.Rented == 0);
    }

    [Theory]
    [InlineData(86_400_000)]
    [InlineData(5)]
    public async Task CopyToAsync_FileGrows_TheDestinationAndTheContextAreUsedOnTheApplicationsThreadsOnly(int interval)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() || interval < 1000, "Only Linux tells of growth between two looks.");
        using GrowingFile file = new(_folder.File("log"), "one\n");
        AsyncLocal<string> local = new(_ => CheckThread()) { Value = "the caller's" };
        WatchedWriter destination = new() { OnCall = CheckThread };
        FilePipeReader reader = FilePipeReader.Create(file.Path, Options(0, interval, pool: null));
        Task copying = reader.CopyToAsync(destination, TestContext.Current.CancellationToken);
        for (int i = 1; i <= Waits; i++)
        {
            await Eventually.TrueAsync(() => destination.Length == 4 * i);
            await Task.Delay(10, TestContext.Current.CancellationToken);
            file.Append("two\n");
        }

        reader.CancelPendingRead();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => GrowingFile.Bounded(copying));
        await reader.CompleteAsync();
        Assert.Equal("the caller's", local.Value);
        Assert.Empty(_offenders);
    }

    private static FilePipeReaderOptions Options(long readAhead, int interval, HostilePool? pool)
        => new() { Follow = true, FollowInterval = TimeSpan.FromMilliseconds(interval), PauseReadAheadThreshold = readAhead, Pool = pool };

    /// <summary>The names of the library's threads begin with the same word.</summary>
    private void CheckThread()
    {
        if (Thread.CurrentThread.Name?.StartsWith("Pipelines.File", StringComparison.Ordinal) == true)
        {
            _offenders.Add($"{Thread.CurrentThread.Name}: {Environment.StackTrace}");
        }
    }
}
