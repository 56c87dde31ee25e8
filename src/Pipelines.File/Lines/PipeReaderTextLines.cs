namespace Pipelines.File.Lines;

/// <summary>Enumerates the lines of a pipe as text, in an encoding whose line feed is the byte 0x0A.</summary>
internal sealed class PipeReaderTextLines(LineBatches batches, Encoding encoding) : IAsyncEnumerable<string>, IAsyncEnumerator<string>
{
    private readonly PipeReaderLines _lines = new(batches);
    private bool _isStarted;

    public string Current { get; private set; } = string.Empty;

    public IAsyncEnumerator<string> GetAsyncEnumerator(CancellationToken cancellationToken = default)
    {
        _lines.GetAsyncEnumerator(cancellationToken);
        _isStarted = batches.Offset > 0;
        return this;
    }

    public ValueTask<bool> MoveNextAsync()
    {
        ValueTask<bool> move = _lines.MoveNextAsync();
        return move.IsCompletedSuccessfully ? new ValueTask<bool>(move.Result && Decode()) : DecodeAsync(move);
    }

    public ValueTask DisposeAsync() => _lines.DisposeAsync();

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<bool> DecodeAsync(ValueTask<bool> move) => await move.ConfigureAwait(false) && Decode();

    private bool Decode()
    {
        ReadOnlySpan<byte> line = _lines.Span;
        if (!_isStarted)
        {
            _isStarted = true;
            ReadOnlySpan<byte> mark = ByteOrderMark.Of(encoding);
            if (line.StartsWith(mark))
            {
                line = line[mark.Length..];
                if (batches.Used == mark.Length)
                {
                    // The pipe holds only the byte-order mark, so it has no line.
                    return false;
                }
            }
        }

        Current = encoding.GetString(line);
        return true;
    }
}
