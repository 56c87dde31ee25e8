using System.Diagnostics;

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

    /// <summary>Runs the orders of every two calls, each with what the back end may do meanwhile, and prints how many those were.</summary>
    public static Task ExploreAsync<TCall>(string what, Func<TCall, TCall, Choices, Order> begin)
        where TCall : struct, Enum
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(),
            "The back end is scripted, the same on every system, and handing over between threads takes Wine minutes.");
        return RunAsync(() =>
        {
            Stopwatch time = Stopwatch.StartNew();
            long orders = 0;
            TCall[] calls = Enum.GetValues<TCall>();
            foreach ((TCall first, TCall second) in calls.SelectMany(first => calls.Select(second => (first, second))))
            {
                Choices choices = new();
                int left = Exploration.MostOrders;
                do
                {
                    using Order order = begin(first, second, choices);
                    order.Run();
                    orders++;
                }
                while (--left > 0 && choices.MoveNext());
            }

            Console.WriteLine($"{orders} orders of two calls of {what}, {time.ElapsedMilliseconds} ms.");
        });
    }
}
