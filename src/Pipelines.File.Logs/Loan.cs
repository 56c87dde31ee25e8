namespace Pipelines.File;

/// <summary>What a loop has lent to its caller: the current number is that of what is valid now.</summary>
internal sealed class Loan
{
    private int _number;

    internal int Number => Volatile.Read(ref _number);

    /// <summary>What was lent is not valid any more.</summary>
    internal void End() => Volatile.Write(ref _number, _number + 1);

    /// <exception cref="InvalidOperationException">What was lent with this number is over.</exception>
    internal static void ThrowIfOver(Loan? loan, int number)
    {
        if (loan is not null && loan.Number != number)
        {
            throw new InvalidOperationException(
                "Lines of a follower are valid until the next step of the loop that returned them. Copy() returns some that may be kept.");
        }
    }
}
