using System.Globalization;

namespace Pipelines.File;

/// <summary>
/// <see cref="Journal.AppendBatchAsync"/> was told which number the first record must get, and others have come before. Nothing was
/// appended. Read what has come, and decide again.
/// </summary>
public sealed class JournalConflictException : InvalidOperationException
{
    /// <summary>Creates an exception without numbers.</summary>
    public JournalConflictException()
        : base("The next record of the journal has another number than expected.")
    {
    }

    /// <summary>Creates an exception with a message.</summary>
    /// <param name="message">The error message.</param>
    public JournalConflictException(string? message)
        : base(message)
    {
    }

    /// <summary>Creates an exception with a message and a cause.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="innerException">The cause.</param>
    public JournalConflictException(string? message, Exception? innerException)
        : base(message, innerException)
    {
    }

    internal JournalConflictException(long expected, long next)
        : base(string.Create(
            CultureInfo.InvariantCulture,
            $"The next record of the journal has the number {next}, and not {expected}. Nothing was appended."))
    {
        ExpectedSequence = expected;
        NextSequence = next;
    }

    /// <summary>The number that was expected.</summary>
    public long ExpectedSequence { get; }

    /// <summary>The number that the next record would have got.</summary>
    public long NextSequence { get; }
}
