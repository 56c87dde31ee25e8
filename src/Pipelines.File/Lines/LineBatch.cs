using Pipelines.File.Lines;

namespace Pipelines.File;

/// <summary>
/// The whole lines of one read: <c>foreach (ReadOnlySpan&lt;byte&gt; line in batch)</c>. Each line is one span, without its line end (LF or
/// CR LF); the loop neither waits nor allocates. <b>A batch and its lines are valid until the next step of the loop that returned the
/// batch.</b>
/// </summary>
[SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types", Justification = "There is one at a time: nobody compares it.")]
public readonly struct LineBatch
{
    private readonly LineBatches? _batches;
    private readonly int _number;

    internal LineBatch(LineBatches batches, int number)
    {
        _batches = batches;
        _number = number;
    }

    /// <summary>Enumerates the lines. You may do this several times.</summary>
    /// <exception cref="InvalidOperationException">
    /// The loop that returned the batch has continued, so the bytes are not valid any more.
    /// </exception>
    public Enumerator GetEnumerator()
        => _batches is null || _batches.Number == _number
            ? new Enumerator(_batches)
            : throw new InvalidOperationException("A batch of lines is valid until the next step of the loop that returned it.");

    /// <summary>Enumerates the lines with their file offsets: <c>foreach (Line line in batch.WithOffsets())</c>.</summary>
    /// <inheritdoc cref="GetEnumerator" path="/exception"/>
    public OffsetEnumerator WithOffsets() => new(GetEnumerator());

    /// <summary>Enumerates the lines of a batch.</summary>
    [SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types", Justification = "A ref struct cannot be compared as an object.")]
    public ref struct Enumerator
    {
        private readonly LineBatches? _batches;
        private readonly int _maxLength;
        private LineFeeds _lineFeeds;
        private ReadOnlySpan<byte> _segment;

        // The current line, in the segment; a joined one is a segment by itself.
        private int _start;
        private int _length;

        // Where the next line begins in the segment, and where the segment begins in the file.
        private int _next;
        private long _segmentOffset;
        private SequencePosition _nextSegment;

        internal Enumerator(LineBatches? batches)
        {
            _batches = batches;
            if (batches is not null)
            {
                _maxLength = batches.MaxLength;
                _segmentOffset = batches.Offset;
                _nextSegment = batches.Bytes.Start;
                batches.Used = batches.Offset;
            }
        }

        /// <summary>The current line without its line end.</summary>
        public readonly ReadOnlySpan<byte> Current => _segment.Slice(_start, _length);

        /// <summary>The offset behind the end of the current line, and before the first line that of the batch.</summary>
        internal readonly long EndOffset => _segmentOffset + _next;

        /// <summary>Moves to the next line.</summary>
        /// <exception cref="LineTooLongException">The next line is longer than maxLength.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public bool MoveNext() => _lineFeeds.TryTake(out int lineFeed) ? Take(lineFeed) : MoveBeyondBlock();

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private bool Take(int lineFeed)
        {
            int start = _next;
            int length = lineFeed - start;
            if (length > 0 && _segment[lineFeed - 1] == '\r')
            {
                length--;
            }

            if (length > _maxLength)
            {
                ThrowTooLong();
            }

            _start = start;
            _length = length;
            _next = lineFeed + 1;
            _batches!.Used = _segmentOffset + _next;
            return true;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private bool MoveBeyondBlock()
        {
            if (_batches is null)
            {
                return false;
            }

            while (!_lineFeeds.Search(_segment))
            {
                if (_next < _segment.Length)
                {
                    TakeCrossing(_batches);
                    return true;
                }

                if (!TryMoveToSegment(_batches))
                {
                    _batches.Count(_lineFeeds.Count);
                    return false;
                }
            }

            _lineFeeds.TryTake(out int lineFeed);
            return Take(lineFeed);
        }

        private bool TryMoveToSegment(LineBatches batches)
        {
            _segmentOffset += _segment.Length;
            _next = 0;
            bool isThere = batches.Bytes.TryGet(ref _nextSegment, out ReadOnlyMemory<byte> memory);
            _segment = memory.Span;

            // Only the first bytes of the batch may be searched already.
            _lineFeeds.Begin((int)Math.Clamp(batches.Offset + batches.Searched - _segmentOffset, 0, _segment.Length));
            return isThere;
        }

        private readonly void ThrowTooLong() => throw _batches!.TooLong();

        private void TakeCrossing(LineBatches batches)
        {
            long offset = EndOffset;
            ReadOnlySequence<byte> rest = batches.Bytes.Slice(offset - batches.Offset);
            ReadOnlySequence<byte> line = batches.TakeCrossing(rest, Math.Max(_segment.Length - _next, batches.Offset + batches.Searched - offset), out _nextSegment);
            batches.Used = offset + rest.Slice(0, _nextSegment).Length;

            // A segment by itself, which ends where the line does, with its line end.
            _segment = line.IsSingleSegment ? line.FirstSpan : batches.Join(line);
            _start = 0;
            _length = _next = _segment.Length;
            _segmentOffset = batches.Used - _length;
            _lineFeeds.Begin(_length);
            _lineFeeds.Count++;
        }
    }

    /// <summary>Enumerates the lines of a batch with their file offsets.</summary>
    [SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types", Justification = "A ref struct cannot be compared as an object.")]
    public ref struct OffsetEnumerator
    {
        private Enumerator _lines;
        private long _offset;

        internal OffsetEnumerator(Enumerator lines) => _lines = lines;

        /// <summary>The current line and its offsets.</summary>
        public readonly Line Current => new(_lines.Current, _offset, _lines.EndOffset);

        /// <summary>Returns itself, for <c>foreach</c>.</summary>
        public readonly OffsetEnumerator GetEnumerator() => this;

        /// <inheritdoc cref="Enumerator.MoveNext"/>
        public bool MoveNext()
        {
            _offset = _lines.EndOffset;
            return _lines.MoveNext();
        }
    }
}
