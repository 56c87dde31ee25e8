namespace Pipelines.File.Lines;

/// <summary>The lines of a pipe one by one, as parts of what the reader gave: a walk through batches that goes on where it was left.</summary>
internal sealed class PipeReaderLines(LineBatches batches) : IAsyncEnumerable<ReadOnlySequence<byte>>, IAsyncEnumerator<ReadOnlySequence<byte>>
{
    private LineFeeds _lineFeeds;

    // The segment: a part of an array from _start, or memory that is none (_array is null then).
    private ReadOnlyMemory<byte> _segment;
    private byte[]? _array;
    private int _start;
    private int _length;

    // Where the next line begins in the segment, and where the segment begins in the file.
    private int _next;
    private long _segmentOffset;
    private SequencePosition _nextSegment;

    // The current line: in the segment, unless it crosses segments.
    private int _lineStart;
    private int _lineLength;
    private ReadOnlySequence<byte>? _crossing;

    // Made when it is asked for: to store it in a field for every line would cost two write barriers.
    public ReadOnlySequence<byte> Current
        => _crossing is { } line ? line
            : _array is { } array ? new ReadOnlySequence<byte>(array, _start + _lineStart, _lineLength)
            : new ReadOnlySequence<byte>(_segment.Slice(_lineStart, _lineLength));

    /// <summary>The current line where it does not cross segments.</summary>
    internal ReadOnlySpan<byte> Span => Segment.Slice(_lineStart, _lineLength);

    internal bool IsCrossing => _crossing is not null;

    private ReadOnlySpan<byte> Segment => _array is { } array ? new ReadOnlySpan<byte>(array, _start, _length) : _segment.Span;

    public IAsyncEnumerator<ReadOnlySequence<byte>> GetAsyncEnumerator(CancellationToken cancellationToken = default)
    {
        batches.GetAsyncEnumerator(cancellationToken);
        return this;
    }

    public ValueTask<bool> MoveNextAsync()
        => !_lineFeeds.TryTake(out int lineFeed) ? MoveBeyondBlockAsync()
            : TryTake(lineFeed) ? new ValueTask<bool>(true)
            : ValueTask.FromException<bool>(batches.TooLong());

    public ValueTask DisposeAsync() => batches.DisposeAsync();

    private bool TryTake(int lineFeed)
    {
        ReadOnlySpan<byte> segment = Segment;
        int start = _next;
        int length = lineFeed - start;
        if (length > 0 && segment[lineFeed - 1] == '\r')
        {
            length--;
        }

        if (length > batches.MaxLength)
        {
            return false;
        }

        _lineStart = start;
        _lineLength = length;
        _next = lineFeed + 1;
        batches.Used = _segmentOffset + _next;
        return true;
    }

    private ValueTask<bool> MoveBeyondBlockAsync()
    {
        // Here, too, and not in reads alone: one read may give a great many lines.
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
        _crossing = null;
        while (!_lineFeeds.Search(Segment))
        {
            if (_next < _length)
            {
                TakeCrossing();
                return true;
            }

            if (!TryMoveToSegment())
            {
                return false;
            }
        }

        _lineFeeds.TryTake(out int lineFeed);
        return TryTake(lineFeed) ? true : throw batches.TooLong();
    }

    private bool TryMoveToSegment()
    {
        bool isThere = batches.Bytes.TryGet(ref _nextSegment, out ReadOnlyMemory<byte> segment);
        BeginSegment(_segmentOffset + _length, segment);
        return isThere;
    }

    private void BeginSegment(long offset, ReadOnlyMemory<byte> segment)
    {
        bool isArray = MemoryMarshal.TryGetArray(segment, out ArraySegment<byte> array) && array.Array is not null;
        _array = isArray ? array.Array : null;
        _start = isArray ? array.Offset : 0;
        _segment = segment;
        _segmentOffset = offset;
        _length = segment.Length;
        _next = 0;

        // Only the first bytes of the batch may be searched already.
        _lineFeeds.Begin((int)Math.Clamp(batches.Offset + batches.Searched - offset, 0, _length));
    }

    private void TakeCrossing()
    {
        long offset = _segmentOffset + _next;
        ReadOnlySequence<byte> rest = batches.Bytes.Slice(offset - batches.Offset);
        long searched = Math.Max(_length - _next, batches.Offset + batches.Searched - offset);
        _crossing = batches.TakeCrossing(rest, searched, out _nextSegment);
        _lineFeeds.Count++;
        BeginSegment(offset + rest.Slice(0, _nextSegment).Length, default);
        batches.Used = _segmentOffset;
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<bool> ReadLineAsync()
    {
        do
        {
            batches.Count(_lineFeeds.Count);
            if (!await batches.MoveNextAsync().ConfigureAwait(false))
            {
                return false;
            }

            _nextSegment = batches.Bytes.Start;
            _lineFeeds.Count = 0;
            BeginSegment(batches.Offset, default);
        }
        while (!TryMoveInBatch());
        return true;
    }
}
