namespace FilePipelines.TwoCallers.Tests;

/// <summary>Runs orders on a thread of their own: what they wait for runs on the pool's.</summary>
internal static class OrderThread
{
    static OrderThread()
    {
        // What an order does to a thread of the pool ends the process, and says of itself only what was thrown.
        AppDomain.CurrentDomain.UnhandledException += static (_, _) => Console.Error.WriteLine(Order.Running);
    }

    public static Task RunAsync(Action run)
        => OwnThread.RunAsync(run);
}
