using System.Diagnostics;

namespace FilePipelines.TwoCallers.Tests;

/// <summary>Every two calls of a reader, in every order with what the back end does meanwhile: <see cref="Order"/>.</summary>
public sealed class TwoReaderCallersTests
{
    private static readonly ReaderCall[] s_calls = Enum.GetValues<ReaderCall>();

    public static MatrixTheoryData<ReaderSituation, bool> Situations { get; } = new(Enum.GetValues<ReaderSituation>(), [false, true]);

    /// <summary>One order again, as the message of a failure names it.</summary>
    [Theory]
    [InlineData("ReadAhead callers ReadAsync CopyToAsync 1.1.0")]
    public async Task TwoCalls_InThisOrder_HoldToTheContract(string order)
        => await OrderThread.RunAsync(() =>
        {
            using ReaderOrder again = ReaderOrder.Parse(order);
            again.Run();
        });

    [Theory]
    [MemberData(nameof(Situations))]
    [Trait("Category", Exploration.Category)]
    public async Task TwoCalls_InEveryOrderWithTheEvents_LoseNothingAndEnd(ReaderSituation situation, bool hasCallersPool)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(),
            "The back end is scripted, the same on every system, and handing over between threads takes Wine minutes.");
        await OrderThread.RunAsync(() =>
        {
            Stopwatch time = Stopwatch.StartNew();
            long orders = 0;
            foreach (ReaderCall first in s_calls)
            {
                foreach (ReaderCall second in s_calls)
                {
                    Choices choices = new();
                    int left = Exploration.MostOrders;
                    do
                    {
                        using ReaderOrder order = new(situation, hasCallersPool, first, second, choices);
                        order.Run();
                        orders++;
                    }
                    while (--left > 0 && choices.MoveNext());
                }
            }

            Console.WriteLine($"{orders} orders of two calls of a reader: "
                + $"{situation}, {(hasCallersPool ? "a caller's pool" : "own pool")}, {time.ElapsedMilliseconds} ms.");
        });
    }
}
