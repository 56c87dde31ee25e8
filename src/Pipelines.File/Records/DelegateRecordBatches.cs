namespace Pipelines.File.Records;

/// <summary>The batches of records whose parser is a delegate, without the type of the parser in their own.</summary>
internal sealed class DelegateRecordBatches<T>(RecordBatches<T, RecordBatch<T>.DelegateParser> batches)
    : IAsyncEnumerable<RecordBatch<T>>, IAsyncEnumerator<RecordBatch<T>>
    where T : allows ref struct
{
    public RecordBatch<T> Current => new(batches.Current);

    public IAsyncEnumerator<RecordBatch<T>> GetAsyncEnumerator(CancellationToken cancellationToken = default)
    {
        batches.GetAsyncEnumerator(cancellationToken);
        return this;
    }

    public ValueTask<bool> MoveNextAsync() => batches.MoveNextAsync();

    public ValueTask DisposeAsync() => batches.DisposeAsync();
}
