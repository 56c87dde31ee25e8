using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Cold;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>
/// What the readers do to the rest of the program: how long one work item that has nothing to do with them waits for the thread pool while
/// they read.
/// </summary>
public class ColdRandomDelay : ColdRandomSuite
{
    private static readonly TimeSpan s_headStart = TimeSpan.FromMilliseconds(5);

    private Task<long> _reading = Task.FromResult(0L);

    [IterationSetup(Target = nameof(RandomAccessBlocking))]
    public void StartBlocking() => Start(RandomReadWays.Blocking);

    [IterationSetup(Target = nameof(RandomAccessAsync))]
    public void StartAsync() => Start(RandomReadWays.Asynchronous);

    [IterationSetup(Target = nameof(FilePipeReader))]
    public void StartFilePipeReader() => Start(RandomReadWays.FilePipeReader);

    [IterationCleanup]
    public void Stop() => _reading.GetAwaiter().GetResult();

    [Benchmark(Baseline = true)]
    public void RandomAccessBlocking() => RunUnrelatedWorkItem();

    [Benchmark]
    public void RandomAccessAsync() => RunUnrelatedWorkItem();

    [Benchmark]
    public void FilePipeReader() => RunUnrelatedWorkItem();

    private void RunUnrelatedWorkItem()
    {
        if (_reading.IsCompleted)
        {
            throw new InvalidOperationException("The readers were done before the work item was queued: nothing would be measured.");
        }

        using ManualResetEventSlim ran = new();
        ThreadPool.UnsafeQueueUserWorkItem(static ran => ran.Set(), ran, preferLocal: false);
        ran.Wait();
    }

    private void Start(RandomReadWay way)
    {
        PageCache.Evict(Point.File.Path);
        _reading = way.RunAsync(Point).AsTask();
        Thread.Sleep(s_headStart);
    }
}
