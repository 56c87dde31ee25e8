namespace Pipelines.File;

/// <summary>The memory of one reading, which each step uses again: what an earlier step has returned is not valid any more.</summary>
internal sealed class BatchLease
{
    /// <summary>How many steps were made.</summary>
    internal int Number { get; private set; }

    internal void Step() => Number++;

    internal static void ThrowIfOver(BatchLease? lease, int number)
    {
        if (lease is not null && lease.Number != number)
        {
            throw new InvalidOperationException(
                "A batch of a journal and its records are valid until the next step of the loop that returned the batch. "
                + "Copy() keeps them.");
        }
    }
}
