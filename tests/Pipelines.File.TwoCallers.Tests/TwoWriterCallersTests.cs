using System.Diagnostics;

namespace FilePipelines.TwoCallers.Tests;

/// <summary>Every two calls of a writer, in every order with what the back end does meanwhile: <see cref="Order"/>.</summary>
public sealed class TwoWriterCallersTests
{
    private static readonly WriterCall[] s_calls = Enum.GetValues<WriterCall>();

    public static MatrixTheoryData<WriterSituation, bool> Situations { get; } = new(Enum.GetValues<WriterSituation>(), [false, true]);

    /// <summary>One order again, as the message of a failure names it.</summary>
    [Theory]
    [InlineData("NothingWritten callers WriteAsync GetMemory 0.0.0.0.0.1")]
    [InlineData("WriteBehind callers Complete WriteAsync 1.1.1.4")]
    public async Task TwoCalls_InThisOrder_HoldToTheContract(string order)
        => await OrderThread.RunAsync(() =>
        {
            using WriterOrder again = WriterOrder.Parse(order);
            again.Run();
        });

    [Theory]
    [MemberData(nameof(Situations))]
    [Trait("Category", Exploration.Category)]
    public async Task TwoCalls_InEveryOrderWithTheEvents_WriteWhatIsDueAndEnd(WriterSituation situation, bool hasCallersPool)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(),
            "The back end is scripted, the same on every system, and handing over between threads takes Wine minutes.");
        await OrderThread.RunAsync(() =>
        {
            Stopwatch time = Stopwatch.StartNew();
            long orders = 0;
            foreach (WriterCall first in s_calls)
            {
                foreach (WriterCall second in s_calls)
                {
                    Choices choices = new();
                    int left = Exploration.MostOrders;
                    do
                    {
                        using WriterOrder order = new(situation, hasCallersPool, first, second, choices);
                        order.Run();
                        orders++;
                    }
                    while (--left > 0 && choices.MoveNext());
                }
            }

            Console.WriteLine($"{orders} orders of two calls of a writer: "
                + $"{situation}, {(hasCallersPool ? "a caller's pool" : "own pool")}, {time.ElapsedMilliseconds} ms.");
        });
    }
}
