using System.Diagnostics.CodeAnalysis;

namespace Pipelines.File;

/// <summary>
/// Records of a journal that lie one behind the other: <c>foreach (JournalRecord record in batch)</c>. The loop neither waits nor
/// allocates. <b>A batch and its records are valid until the next step of the loop that returned the batch.</b>
/// </summary>
[SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types",
    Justification = "There is one at a time: nobody compares it.")]
public readonly struct JournalBatch
{
    private readonly ReadOnlyMemory<byte> _bytes;

    internal JournalBatch(ReadOnlyMemory<byte> bytes, long first, long next)
    {
        _bytes = bytes;
        FirstSequence = first;
        NextSequence = next;
    }

    /// <summary>The number of records, at least 1.</summary>
    public int Count => (int)(NextSequence - FirstSequence);

    /// <summary>The sequence number of the first record.</summary>
    public long FirstSequence { get; }

    /// <summary>The sequence number after the last record: from here on <c>ReadBatchesAsync</c> goes on another time.</summary>
    public long NextSequence { get; }

    /// <summary>Enumerates the records. You may do this several times.</summary>
    public Enumerator GetEnumerator() => new(_bytes.Span, FirstSequence);

    /// <summary>Enumerates the records of a batch.</summary>
    [SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types",
        Justification = "A ref struct cannot be compared as an object.")]
    public ref struct Enumerator
    {
        private ReadOnlySpan<byte> _rest;
        private ReadOnlySpan<byte> _record;
        private long _next;

        internal Enumerator(ReadOnlySpan<byte> bytes, long first)
        {
            _rest = bytes;
            _next = first;
        }

        /// <summary>The current record.</summary>
        public readonly JournalRecord Current => new(_next - 1, _record);

        /// <summary>Moves to the next record.</summary>
        public bool MoveNext()
        {
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
