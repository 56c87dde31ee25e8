using System.Globalization;

namespace Pipelines.File;

/// <summary>
/// <see cref="Journal.AppendBatchAsync"/> was called with the number of its first record, and others have come before. Nothing was
/// appended. Read what has come, and decide again.
/// </summary>
/// <param name="expectedSequence">The number that was expected.</param>
/// <param name="nextSequence">The number that the next record would have got.</param>
public sealed class JournalConflictException(long expectedSequence, long nextSequence)
    : InvalidOperationException(string.Create(CultureInfo.InvariantCulture,
        $"The next record of the journal has the number {nextSequence}, and not {expectedSequence}. Nothing was appended."))
{
    /// <summary>The number that was expected.</summary>
    public long ExpectedSequence => expectedSequence;

    /// <summary>The number that the next record would have got.</summary>
    public long NextSequence => nextSequence;
}
