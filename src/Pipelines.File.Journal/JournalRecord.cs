namespace Pipelines.File;

/// <summary>A record of a journal. It is valid until the next step of the loop that returned its batch.</summary>
public readonly ref struct JournalRecord
{
    internal JournalRecord(long sequence, ReadOnlySpan<byte> span)
    {
        Sequence = sequence;
        Span = span;
    }

    /// <summary>The record's sequence number: 0, 1, 2, and so on, in the order of the journal.</summary>
    public long Sequence { get; }

    /// <summary>The record's bytes.</summary>
    public ReadOnlySpan<byte> Span { get; }
}
