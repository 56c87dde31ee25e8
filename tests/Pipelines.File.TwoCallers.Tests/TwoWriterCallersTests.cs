namespace FilePipelines.TwoCallers.Tests;

/// <summary>Every two calls of a writer, in every order with what the back end does meanwhile: <see cref="Order"/>.</summary>
public sealed class TwoWriterCallersTests
{
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
    public Task TwoCalls_InEveryOrderWithTheEvents_WriteWhatIsDueAndEnd(WriterSituation situation, bool hasCallersPool)
        => OrderThread.ExploreAsync<WriterCall>(
            $"a writer: {situation}, {(hasCallersPool ? "a caller's pool" : "own pool")}",
            (first, second, choices) => new WriterOrder(situation, hasCallersPool, first, second, choices));
}
