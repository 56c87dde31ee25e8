namespace Pipelines.File.Lines;

/// <summary>
/// A walk through the lines of one batch, segment after segment. A line that ends in the segment in which it begins is a part of it; one
/// that crosses segments is <see cref="Crossing"/>. The span of the segment is handed to every step, as whoever walks has it at hand.
/// </summary>
internal struct LineWalk
{
    private readonly LineBatches _batches;
    private LineFeeds _lineFeeds;

    // The segment: a part of an array, or memory that is none (_array is null then).
    private ReadOnlyMemory<byte> _memory;
    private byte[]? _array;
    private int _arrayStart;

    // Where the next line begins in the segment, and where the segment begins in the file.
    private int _next;
    private long _segmentOffset;
    private SequencePosition _nextSegment;

    /// <summary>Begins at the beginning of the current batch.</summary>
    internal LineWalk(LineBatches batches)
    {
        _batches = batches;
        _segmentOffset = batches.Used = batches.Offset;
        _nextSegment = batches.Bytes.Start;
    }

    /// <summary>Where the current line is in the segment; of a line that crosses segments, 0.</summary>
    internal int Start { get; private set; }

    /// <summary>The length of the current line, bytes.</summary>
    internal int Length { get; private set; }

    /// <summary>Whether the current line is <see cref="Crossing"/>. The segment is empty then.</summary>
    internal bool IsCrossing { get; private set; }

    internal ReadOnlySequence<byte> Crossing { get; private set; }

    /// <summary>The offset behind the current line and its end, and before the first line that of the batch.</summary>
    internal readonly long EndOffset => _segmentOffset + _next;

    internal readonly ReadOnlySpan<byte> Segment
        => _array is { } array ? new ReadOnlySpan<byte>(array, _arrayStart, _memory.Length) : _memory.Span;

    /// <summary>The current line, which does not cross segments, as a sequence.</summary>
    internal readonly ReadOnlySequence<byte> Sequence
        => _array is { } array ? new ReadOnlySequence<byte>(array, _arrayStart + Start, Length)
            : new ReadOnlySequence<byte>(_memory.Slice(Start, Length));

    /// <summary>
    /// Takes the next line feed of the block that was searched last. <see langword="false"/>: <see cref="TryMoveBeyondBlock"/> goes on.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    internal bool TryTakeLineFeed(out int lineFeed) => _lineFeeds.TryTake(out lineFeed);

    /// <summary>Moves to the line that ends there. <see langword="false"/>: it is too long.</summary>
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
    /// Moves to the next line where its end is not in the block that was searched last. <see langword="false"/>: the batch has no more.
    /// </summary>
    /// <param name="segment">The segment, and then that of the line; empty where the line crosses segments.</param>
    /// <exception cref="LineTooLongException">The line is longer than allowed.</exception>
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

        // Only the first bytes of the batch may be searched already.
        _lineFeeds.Begin((int)Math.Clamp(_batches.Offset + _batches.Searched - offset, 0, segment.Length));
    }

    /// <summary>Takes the line whose end is not in the segment that it begins in, where it has as many bytes as are left of that.</summary>
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
