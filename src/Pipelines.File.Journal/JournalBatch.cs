using System.Diagnostics.CodeAnalysis;

namespace Pipelines.File;

/// <summary>
/// Records of a journal that lie one behind the other: <c>foreach (JournalRecord record in batch)</c>. The loop neither waits nor
/// allocates. <b>A batch and its records are valid until the next step of the loop that returned the batch</b>, and throw later;
/// <see cref="Copy"/> may be kept.
/// </summary>
[SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types",
    Justification = "There is one at a time: nobody compares it.")]
public readonly struct JournalBatch
{
    private readonly BatchLease? _lease;
    private readonly int _number;
    private readonly ReadOnlyMemory<byte> _bytes;

    internal JournalBatch(BatchLease? lease, ReadOnlyMemory<byte> bytes, long first, JournalPosition position)
    {
        _lease = lease;
        _number = lease?.Number ?? 0;
        _bytes = bytes;
        FirstSequence = first;
        Position = position;
    }

    /// <summary>The number of records, at least 1.</summary>
    public int Count => (int)(NextSequence - FirstSequence);

    /// <summary>The sequence number of the first record.</summary>
    public long FirstSequence { get; }

    /// <summary>The sequence number after the last record: from here on <c>ReadBatchesAsync</c> goes on another time.</summary>
    public long NextSequence => Position.Sequence;

    /// <summary>
    /// The place behind the last record. From it <c>ReadBatchesAsync</c> goes on only if the journal still has what was read before.
    /// </summary>
    public JournalPosition Position { get; }

    /// <summary>Enumerates the records. You may do this several times.</summary>
    /// <exception cref="InvalidOperationException">The loop that returned the batch has continued.</exception>
    public Enumerator GetEnumerator() => new(_lease, _number, Valid().Span, FirstSequence);

    /// <summary>The same records in memory of their own, which stay valid.</summary>
    /// <inheritdoc cref="GetEnumerator" path="/exception"/>
    public JournalBatch Copy() => new(null, Valid().ToArray(), FirstSequence, Position);

    internal ReadOnlyMemory<byte> Valid()
    {
        BatchLease.ThrowIfOver(_lease, _number);
        return _bytes;
    }

    /// <summary>Enumerates the records of a batch.</summary>
    [SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types",
        Justification = "A ref struct cannot be compared as an object.")]
    public ref struct Enumerator
    {
        private readonly BatchLease? _lease;
        private readonly int _number;
        private ReadOnlySpan<byte> _rest;
        private ReadOnlySpan<byte> _record;
        private long _next;

        internal Enumerator(BatchLease? lease, int number, ReadOnlySpan<byte> bytes, long first)
        {
            _lease = lease;
            _number = number;
            _rest = bytes;
            _next = first;
        }

        /// <summary>The current record.</summary>
        public readonly JournalRecord Current => new(_lease, _number, _next - 1, _record);

        /// <summary>Moves to the next record.</summary>
        /// <exception cref="InvalidOperationException">The loop that returned the batch has continued.</exception>
        public bool MoveNext()
        {
            BatchLease.ThrowIfOver(_lease, _number);
            while (_rest.Length > 0)
            {
                RecordHeader header = RecordHeader.Read(_rest);
                _record = _rest[RecordHeader.Length..(int)header.Size];
                _rest = _rest[(int)JournalFormat.Padded(header.Size)..];
                if (!header.IsStatement)
                {
                    _next++;
                    return true;
                }
            }

            return false;
        }
    }
}
