using Pipelines.File.Lines;

namespace Pipelines.File;

/// <summary>
/// The whole lines of one read: <c>foreach (ReadOnlySpan&lt;byte&gt; line in batch)</c>. Each line is one span, without its line end (LF or
/// CR LF); the loop neither waits nor allocates. <b>A batch and its lines are valid until the next step of the loop that returned the
/// batch.</b>
/// </summary>
[SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types",
    Justification = "There is one at a time: nobody compares it.")]
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
    [SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types",
        Justification = "A ref struct cannot be compared as an object.")]
    public ref struct Enumerator
    {
        private readonly LineBatches? _batches;
        private LineWalk _walk;

        // The segment that holds the current line, or the joined bytes of a line that crosses segments.
        private ReadOnlySpan<byte> _segment;

        internal Enumerator(LineBatches? batches)
        {
            _batches = batches;
            if (batches is not null)
            {
                _walk = new LineWalk(batches);
            }
        }

        /// <summary>The current line without its line end.</summary>
        public readonly ReadOnlySpan<byte> Current => _segment.Slice(_walk.Start, _walk.Length);

        /// <summary>The offset after the current line and its line end; before the first line, the offset of the batch.</summary>
        internal readonly long EndOffset => _walk.EndOffset;

        /// <summary>Moves to the next line.</summary>
        /// <exception cref="LineTooLongException">The next line is longer than maxLength.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public bool MoveNext()
        {
            if (!_walk.TryTakeLineFeed(out int lineFeed))
            {
                return MoveBeyondBlock();
            }

            if (!_walk.TryMoveTo(lineFeed, _segment))
            {
                ThrowTooLong();
            }

            return true;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private bool MoveBeyondBlock()
        {
            if (_batches is null)
            {
                return false;
            }

            if (_walk.IsCrossing)
            {
                _segment = default;
            }

            bool isMoved = _walk.TryMoveBeyondBlock(ref _segment);
            if (_walk.IsCrossing)
            {
                _segment = _batches.Join(_walk.Crossing);
            }

            return isMoved;
        }

        private readonly void ThrowTooLong() => throw _batches!.TooLong();
    }

    /// <summary>Enumerates the lines of a batch with their file offsets.</summary>
    [SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types",
        Justification = "A ref struct cannot be compared as an object.")]
    public ref struct OffsetEnumerator
    {
        private Enumerator _lines;
        private long _offset;

        internal OffsetEnumerator(Enumerator lines) => _lines = lines;

        /// <summary>The current line and its offsets.</summary>
        public readonly Line Current => new() { Span = _lines.Current, Offset = _offset, EndOffset = _lines.EndOffset };

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
