namespace FilePipelines.Tests;

/// <summary>Runs what blocks on a thread of its own: what it waits for runs on the pool's.</summary>
internal static class OwnThread
{
    public static Task RunAsync(Action run)
        => Task.Factory.StartNew(run, TestContext.Current.CancellationToken, TaskCreationOptions.LongRunning, TaskScheduler.Default);
}
