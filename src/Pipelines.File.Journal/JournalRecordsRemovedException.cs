using System.Globalization;

namespace Pipelines.File;

/// <summary>
/// Records that were to be read were removed from the journal: by <see cref="Journal.TrimBeforeAsync(long, CancellationToken)"/>,
/// <see cref="JournalOptions.RetainBytes"/> or <see cref="JournalOptions.RetainAge"/>. Read from <see cref="First"/> on.
/// </summary>
public sealed class JournalRecordsRemovedException : IOException
{
    /// <summary>Creates an exception without numbers.</summary>
    public JournalRecordsRemovedException()
        : base("Records were removed from the journal before they were read.")
    {
    }

    /// <summary>Creates an exception with a message.</summary>
    /// <param name="message">The error message.</param>
    public JournalRecordsRemovedException(string? message)
        : base(message)
    {
    }

    /// <summary>Creates an exception with a message and a cause.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="innerException">The cause.</param>
    public JournalRecordsRemovedException(string? message, Exception? innerException)
        : base(message, innerException)
    {
    }

    internal JournalRecordsRemovedException(long sequence, long first)
        : base(string.Create(
            CultureInfo.InvariantCulture,
            $"The records from {sequence} on were removed from the journal before they were read. The first one that there is: {first}."))
    {
        Sequence = sequence;
        First = first;
    }

    /// <summary>The number of the record that was to be read.</summary>
    public long Sequence { get; }

    /// <summary>The number of the first record that there is.</summary>
    public long First { get; }
}
