namespace Pipelines.File.Lines;

/// <summary>
/// Enumerates the lines of a pipe one by one, as parts of the reader's buffer, with one walk through each batch.
/// </summary>
internal sealed class PipeReaderLines(LineBatches batches)
    : IAsyncEnumerable<ReadOnlySequence<byte>>, IAsyncEnumerator<ReadOnlySequence<byte>>
{
    private LineWalk _walk = new(batches);

    // Created when it is asked for: storing it in a field for every line would cost two write barriers.
    public ReadOnlySequence<byte> Current => _walk.IsCrossing ? _walk.Crossing : _walk.Sequence;

    /// <summary>The current line in one piece, valid until the next line.</summary>
    internal ReadOnlySpan<byte> Span => _walk.IsCrossing ? batches.Join(_walk.Crossing) : _walk.Segment.Slice(_walk.Start, _walk.Length);

    public IAsyncEnumerator<ReadOnlySequence<byte>> GetAsyncEnumerator(CancellationToken cancellationToken = default)
    {
        batches.GetAsyncEnumerator(cancellationToken);
        return this;
    }

    public ValueTask<bool> MoveNextAsync()
        => !_walk.TryTakeLineFeed(out int lineFeed) ? MoveBeyondBlockAsync()
            : _walk.TryMoveTo(lineFeed, _walk.Segment) ? new ValueTask<bool>(true)
            : ValueTask.FromException<bool>(batches.TooLong());

    public ValueTask DisposeAsync() => batches.DisposeAsync();

    private ValueTask<bool> MoveBeyondBlockAsync()
    {
        // Check the token here, too, and not only in reads: one read may return a great many lines.
        if (batches.CancellationToken.IsCancellationRequested)
        {
            return ValueTask.FromCanceled<bool>(batches.CancellationToken);
        }

        try
        {
            return TryMoveInBatch() ? new ValueTask<bool>(true) : ReadLineAsync();
        }
        catch (LineTooLongException e)
        {
            return ValueTask.FromException<bool>(e);
        }
    }

    private bool TryMoveInBatch()
    {
        ReadOnlySpan<byte> segment = _walk.Segment;
        return _walk.TryMoveBeyondBlock(ref segment);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<bool> ReadLineAsync()
    {
        do
        {
            if (!await batches.MoveNextAsync().ConfigureAwait(false))
            {
                return false;
            }

            _walk = new LineWalk(batches);
        }
        while (!TryMoveInBatch());
        return true;
    }
}
