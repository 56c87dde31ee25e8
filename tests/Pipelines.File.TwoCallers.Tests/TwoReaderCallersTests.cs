namespace FilePipelines.TwoCallers.Tests;

/// <summary>Every two calls of a reader, in every order with what the back end does meanwhile: <see cref="Order"/>.</summary>
public sealed class TwoReaderCallersTests
{
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
    public Task TwoCalls_InEveryOrderWithTheEvents_LoseNothingAndEnd(ReaderSituation situation, bool hasCallersPool)
        => OrderThread.ExploreAsync<ReaderCall>(
            $"a reader: {situation}, {(hasCallersPool ? "a caller's pool" : "own pool")}",
            (first, second, choices) => new ReaderOrder(situation, hasCallersPool, first, second, choices));
}
