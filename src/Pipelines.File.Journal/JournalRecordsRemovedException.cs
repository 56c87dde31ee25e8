using System.Globalization;

namespace Pipelines.File;

/// <summary>
/// Records that were to be read were removed from the journal: by <see cref="Journal.TrimBeforeAsync(long, CancellationToken)"/>,
/// <see cref="JournalOptions.RetainBytes"/> or <see cref="JournalOptions.RetainAge"/>. Read from <see cref="First"/> on, or from
/// <see cref="Journal.Oldest"/>.
/// </summary>
/// <param name="sequence">The number of the record that was to be read.</param>
/// <param name="first">The number of the first record that there is.</param>
public sealed class JournalRecordsRemovedException(long sequence, long first)
    : IOException(string.Create(CultureInfo.InvariantCulture,
        $"The records from {sequence} on were removed from the journal before they were read. The first one that there is: {first}. "
        + $"To begin with it, read from {nameof(Journal)}.{nameof(Journal.Oldest)}."))
{
    /// <summary>The number of the record that was to be read.</summary>
    public long Sequence => sequence;

    /// <summary>The number of the first record that there is.</summary>
    public long First => first;
}
