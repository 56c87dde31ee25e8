using Pipelines.File.Records;

namespace Pipelines.File;

/// <summary>
/// Records of one read: <c>foreach (T record in batch)</c>. Each is parsed when the loop comes to it; the loop neither waits nor allocates.
/// <b>A batch, and memory that its records refer to, are valid until the next step of the loop that returned the batch</b>; after that a
/// batch throws. <see cref="Copy"/> may be kept.
/// </summary>
/// <typeparam name="T">The type of a record.</typeparam>
/// <typeparam name="TParser">The type of the parser, which the compiler of the runtime can put into the loop.</typeparam>
public readonly struct RecordBatch<T, TParser>
    where T : allows ref struct
    where TParser : struct, IRecordParser<T>
{
    private readonly RecordBatches<T, TParser>? _batches;
    private readonly int _number;

    internal RecordBatch(RecordBatches<T, TParser> batches, int number)
    {
        _batches = batches;
        _number = number;
    }

    /// <summary>
    /// The number of records. Each of them is parsed for it, once for a batch. Records that the loop has not come to count, too.
    /// </summary>
    /// <inheritdoc cref="GetEnumerator" path="/exception"/>
    public int Count => Valid()?.Count ?? 0;

    /// <summary>
    /// A batch of the same records with memory of its own, which may be kept, sent to a channel, and used by another thread.
    /// </summary>
    /// <inheritdoc cref="GetEnumerator" path="/exception"/>
    public RecordBatch<T, TParser> Copy() => Valid()?.Copy() ?? default;

    /// <summary>Enumerates the records. You may do this several times; each time they are parsed again.</summary>
    /// <exception cref="InvalidOperationException">
    /// The loop that returned the batch has continued, so the bytes are not valid any more.
    /// </exception>
    public Enumerator GetEnumerator() => new(Valid());

    /// <summary>
    /// Enumerates the records with their file offsets: <c>foreach (LocatedRecord&lt;T&gt; record in batch.WithOffsets())</c>.
    /// </summary>
    /// <inheritdoc cref="GetEnumerator" path="/exception"/>
    public OffsetEnumerator WithOffsets() => new(GetEnumerator(), _batches?.Offset ?? 0);

    private RecordBatches<T, TParser>? Valid() => _batches is null || _batches.Number == _number ? _batches : throw Outdated();

    private static InvalidOperationException Outdated()
        => new("A batch of records is valid until the next step of the loop that returned it. Copy() gives one that you may keep.");

    /// <summary>Enumerates the records of a batch.</summary>
    public ref struct Enumerator
    {
        private readonly RecordBatches<T, TParser>? _batches;
        private readonly ReadOnlySpan<byte> _bytes;
        private readonly int _number;
        private int _used;

        internal Enumerator(RecordBatches<T, TParser>? batches)
        {
            if (batches is not null)
            {
                _batches = batches;
                _bytes = batches.Bytes.Span;
                _number = batches.Number;
                batches.Returned = 0;
            }
        }

        /// <summary>The current record.</summary>
        public T Current { readonly get; private set; } = default!;

        /// <summary>How many bytes of the batch belong to the current record and those before it.</summary>
        internal readonly int Used => _used;

        /// <summary>Moves to the next record. What the parser throws, it throws.</summary>
        /// <inheritdoc cref="RecordBatch{T, TParser}.GetEnumerator" path="/exception"/>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public bool MoveNext()
        {
            if (_used >= _bytes.Length)
            {
                return false;
            }

            // A step of the outer loop that was not awaited lets this one go on behind it.
            if (_batches!.Number != _number)
            {
                throw Outdated();
            }

            // An invalid record ends the batch, and the next step of the outer loop throws.
            if (!_batches.TryTake(_bytes[_used..], out int consumed, out T record))
            {
                return false;
            }

            Current = record;
            _batches.Returned = _used += consumed;
            return true;
        }
    }

    /// <summary>Enumerates the records of a batch with their file offsets.</summary>
    public ref struct OffsetEnumerator
    {
        private readonly long _batchOffset;
        private Enumerator _records;
        private long _offset;

        internal OffsetEnumerator(Enumerator records, long offset)
        {
            _records = records;
            _batchOffset = offset;
        }

        /// <summary>The current record and its offsets.</summary>
        public readonly LocatedRecord<T> Current
            => new() { Record = _records.Current, Offset = _offset, EndOffset = _batchOffset + _records.Used };

        /// <summary>Returns itself, for <c>foreach</c>.</summary>
        public readonly OffsetEnumerator GetEnumerator() => this;

        /// <inheritdoc cref="Enumerator.MoveNext"/>
        public bool MoveNext()
        {
            _offset = _batchOffset + _records.Used;
            return _records.MoveNext();
        }
    }
}
