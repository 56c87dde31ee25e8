namespace Pipelines.File;

/// <summary>What is counted of the journals of one name.</summary>
internal readonly record struct JournalTotals(
    long Appended, long Committed, long Rounds, long Bytes, long RetentionFailures, long Segments)
{
    internal JournalTotals Plus(JournalTotals other) => new(
        Appended + other.Appended, Committed + other.Committed, Rounds + other.Rounds, Bytes + other.Bytes,
        RetentionFailures + other.RetentionFailures, Segments + other.Segments);
}
