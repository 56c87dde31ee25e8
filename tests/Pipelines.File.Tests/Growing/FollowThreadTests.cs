using System.Collections.Concurrent;
using System.IO.Pipelines;
using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>No code of a caller's runs on the threads that watch and look at followed files, or that wait.</summary>
public sealed class FollowThreadTests : IDisposable
{
    private const int Waits = 20;

    private readonly TempFolder _folder = new();
    private readonly ConcurrentBag<string> _offenders = [];

    public void Dispose() => _folder.Dispose();

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
        WatchedWriter destination = new(CheckThread);
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

    private sealed class WatchedWriter(Action onCall) : PipeWriter
    {
        private readonly byte[] _memory = new byte[65536];
        private int _length;

        public int Length => Volatile.Read(ref _length);

        public override void Advance(int bytes)
        {
            onCall();
            Interlocked.Add(ref _length, bytes);
        }

        public override Memory<byte> GetMemory(int sizeHint = 0)
        {
            onCall();
            return _memory;
        }

        public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

        public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
        {
            onCall();
            return default;
        }

        public override void CancelPendingFlush()
        {
        }

        public override void Complete(Exception? exception = null)
        {
        }
    }
}
