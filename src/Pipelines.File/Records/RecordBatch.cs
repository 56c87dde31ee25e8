namespace Pipelines.File;

/// <summary>
/// Records of one read: <c>foreach (T record in batch)</c>. Each is parsed when the loop comes to it; the loop neither waits nor allocates.
/// <b>A batch, and memory that its records refer to, are valid until the next step of the loop that returned the batch</b>; after that a
/// batch throws. <see cref="Copy"/> may be kept.
/// </summary>
/// <typeparam name="T">The type of a record.</typeparam>
public readonly struct RecordBatch<T>
    where T : allows ref struct
{
    private readonly RecordBatch<T, DelegateParser> _batch;

    internal RecordBatch(RecordBatch<T, DelegateParser> batch) => _batch = batch;

    /// <inheritdoc cref="RecordBatch{T, TParser}.Count"/>
    public int Count => _batch.Count;

    /// <inheritdoc cref="RecordBatch{T, TParser}.Copy"/>
    public RecordBatch<T> Copy() => new(_batch.Copy());

    /// <inheritdoc cref="RecordBatch{T, TParser}.GetEnumerator"/>
    public RecordBatch<T, DelegateParser>.Enumerator GetEnumerator() => _batch.GetEnumerator();

    /// <inheritdoc cref="RecordBatch{T, TParser}.WithOffsets"/>
    public RecordBatch<T, DelegateParser>.OffsetEnumerator WithOffsets() => _batch.WithOffsets();

    /// <summary>Calls the delegate that was passed to <c>ReadRecordBatchesAsync</c>.</summary>
    public readonly struct DelegateParser : IRecordParser<T>
    {
        private readonly RecordSpanParser<T> _parser;

        internal DelegateParser(RecordSpanParser<T> parser) => _parser = parser;

        /// <inheritdoc/>
        public OperationStatus Parse(ReadOnlySpan<byte> bytes, out int consumed, out T record) => _parser(bytes, out consumed, out record);
    }
}
