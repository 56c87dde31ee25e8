namespace Pipelines.File.Lines;

/// <summary>
/// Walks through the lines of one batch, segment after segment. A line within one segment is <see cref="Start"/> and <see cref="Length"/>
/// in it; a line that crosses segments is <see cref="Crossing"/>. The caller keeps the span of the segment and passes it to every step.
/// </summary>
internal struct LineWalk
{
    private readonly LineBatches _batches;
    private LineFeeds _lineFeeds;

    // The segment. _array is null if its memory is not a part of an array.
    private ReadOnlyMemory<byte> _memory;
    private byte[]? _array;
    private int _arrayStart;

    // The index of the next line in the segment, and the file offset of the segment.
    private int _next;
    private long _segmentOffset;
    private SequencePosition _nextSegment;

    /// <summary>Creates a walk from the beginning of the current batch.</summary>
    internal LineWalk(LineBatches batches)
    {
        _batches = batches;
        _segmentOffset = batches.Used = batches.Offset;
        _nextSegment = batches.Bytes.Start;
    }

    /// <summary>The index of the current line in the segment; 0 if the line crosses segments.</summary>
    internal int Start { get; private set; }

    /// <summary>The length of the current line, bytes.</summary>
    internal int Length { get; private set; }

    /// <summary>Whether the current line is <see cref="Crossing"/>. The segment is empty then.</summary>
    internal bool IsCrossing { get; private set; }

    internal ReadOnlySequence<byte> Crossing { get; private set; }

    /// <summary>The offset after the current line and its line end; before the first line, the offset of the batch.</summary>
    internal readonly long EndOffset => _segmentOffset + _next;

    internal readonly ReadOnlySpan<byte> Segment
        => _array is { } array ? new ReadOnlySpan<byte>(array, _arrayStart, _memory.Length) : _memory.Span;

    /// <summary>The current line as a sequence, if it does not cross segments.</summary>
    internal readonly ReadOnlySequence<byte> Sequence
        => _array is { } array ? new ReadOnlySequence<byte>(array, _arrayStart + Start, Length)
            : new ReadOnlySequence<byte>(_memory.Slice(Start, Length));

    /// <summary>
    /// Takes the next line feed of the block that was searched last. Returns <see langword="false"/> if none is left: then call
    /// <see cref="TryMoveBeyondBlock"/>.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    internal bool TryTakeLineFeed(out int lineFeed) => _lineFeeds.TryTake(out lineFeed);

    /// <summary>Moves to the line that ends at this line feed. Returns <see langword="false"/> if the line is too long.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    internal bool TryMoveTo(int lineFeed, ReadOnlySpan<byte> segment)
    {
        int start = _next;
        int length = lineFeed - start;
        if (length > 0 && segment[lineFeed - 1] == '\r')
        {
            length--;
        }

        if (length > _batches.MaxLength)
        {
            return false;
        }

        Start = start;
        Length = length;
        _next = lineFeed + 1;
        _batches.Used = _segmentOffset + _next;
        return true;
    }

    /// <summary>
    /// Moves to the next line if its line end is not in the block that was searched last. Returns <see langword="false"/> if the batch has
    /// no more lines.
    /// </summary>
    /// <param name="segment">The current segment; afterwards that of the line, or empty if the line crosses segments.</param>
    /// <exception cref="LineTooLongException">The line is longer than <see cref="LineBatches.MaxLength"/>.</exception>
    internal bool TryMoveBeyondBlock(ref ReadOnlySpan<byte> segment)
    {
        IsCrossing = false;
        while (!_lineFeeds.Search(segment))
        {
            if (_next < segment.Length)
            {
                TakeCrossing(segment.Length - _next);
                segment = default;
                return true;
            }

            bool isThere = _batches.Bytes.TryGet(ref _nextSegment, out ReadOnlyMemory<byte> next);
            BeginSegment(_segmentOffset + segment.Length, next);
            segment = next.Span;
            if (!isThere)
            {
                _batches.Count(_lineFeeds.Count);
                return false;
            }
        }

        _lineFeeds.TryTake(out int lineFeed);
        return TryMoveTo(lineFeed, segment) ? true : throw _batches.TooLong();
    }

    private void BeginSegment(long offset, ReadOnlyMemory<byte> segment)
    {
        MemoryMarshal.TryGetArray(segment, out ArraySegment<byte> array);
        _array = array.Array;
        _arrayStart = array.Offset;
        _memory = segment;
        _segmentOffset = offset;
        _next = 0;

        // Only bytes at the beginning of the batch may have been searched before.
        _lineFeeds.Begin((int)Math.Clamp(_batches.Offset + _batches.Searched - offset, 0, segment.Length));
    }

    /// <summary>
    /// Takes a line that crosses segments. The last <paramref name="left"/> bytes of the segment begin it and hold no line feed.
    /// </summary>
    private void TakeCrossing(int left)
    {
        long offset = EndOffset - _batches.Offset;
        ReadOnlySequence<byte> rest = _batches.Bytes.Slice(offset);
        if (!LineSearch.TryCut(ref rest, Math.Max(left, _batches.Searched - offset), out ReadOnlySequence<byte> line))
        {
            rest = rest.Slice(rest.End);
        }

        if (line.Length > _batches.MaxLength)
        {
            throw _batches.TooLong();
        }

        IsCrossing = true;
        Crossing = line;
        Start = 0;
        Length = (int)line.Length;
        _lineFeeds.Count++;
        _nextSegment = rest.Start;
        BeginSegment(_batches.Offset + _batches.Bytes.Length - rest.Length, default);
        _batches.Used = EndOffset;
    }
}
