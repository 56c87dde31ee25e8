namespace Pipelines.File;

/// <summary>
/// A record of a journal. It is valid until the next step of the loop that returned its batch, and throws later; <see cref="Copy"/> and
/// <see cref="ToArray"/> may be kept.
/// </summary>
public readonly ref struct JournalRecord
{
    private readonly BatchLease? _lease;
    private readonly int _number;
    private readonly ReadOnlySpan<byte> _span;

    internal JournalRecord(BatchLease? lease, int number, long sequence, ReadOnlySpan<byte> span)
    {
        _lease = lease;
        _number = number;
        _span = span;
        Sequence = sequence;
    }

    /// <summary>The record's sequence number: 0, 1, 2, and so on, in the order of the journal.</summary>
    public long Sequence { get; }

    /// <summary>The record's bytes.</summary>
    /// <exception cref="InvalidOperationException">The loop that returned the batch has continued.</exception>
    public ReadOnlySpan<byte> Span
    {
        get
        {
            BatchLease.ThrowIfOver(_lease, _number);
            return _span;
        }
    }

    /// <summary>The record's bytes in an array of its own.</summary>
    /// <inheritdoc cref="Span" path="/exception"/>
    public byte[] ToArray() => Span.ToArray();

    /// <summary>The record in memory of its own, which stays valid, also over an <see langword="await"/>.</summary>
    /// <inheritdoc cref="Span" path="/exception"/>
    public JournalRecordCopy Copy() => new(Sequence, ToArray());
}
