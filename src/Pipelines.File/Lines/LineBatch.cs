using Pipelines.File.Lines;

namespace Pipelines.File;

/// <summary>
/// Whole lines of one read: <c>foreach (ReadOnlySpan&lt;byte&gt; line in batch)</c>. Each line is one span, without its line end (LF or
/// CR LF); the loop neither waits nor allocates. <b>A batch and its lines are valid until the next step of the loop that returned the
/// batch</b>; after that a batch throws. <see cref="Copy"/> may be kept.
/// </summary>
public readonly struct LineBatch
{
    private readonly LineBatches? _batches;
    private readonly int _number;

    internal LineBatch(LineBatches batches, int number)
    {
        _batches = batches;
        _number = number;
    }

    /// <summary>
    /// The number of lines. Counting them takes less time than enumerating them. Unlike <c>wc -l</c>, it includes a last line that has no
    /// line end.
    /// </summary>
    /// <inheritdoc cref="GetEnumerator" path="/exception"/>
    public int Count => Valid()?.Count ?? 0;

    /// <summary>A line without its line end.</summary>
    /// <param name="index">The index of the line in the batch, from 0.</param>
    /// <exception cref="ArgumentOutOfRangeException">There is no such line.</exception>
    /// <inheritdoc cref="GetEnumerator" path="/exception"/>
    public ReadOnlySpan<byte> this[int index]
    {
        get
        {
            LineBatches? batches = Valid();
            ArgumentOutOfRangeException.ThrowIfNegative(index);
            int[] ends = batches?.Ends ?? [];
            ArgumentOutOfRangeException.ThrowIfGreaterThanOrEqual(index, batches?.Count ?? 0);
            batches!.Returned = ends[index + 1] + 1;
            return LineIndex.Line(batches.Bytes.Span, ends[index] + 1, ends[index + 1]);
        }
    }

    /// <summary>
    /// A batch of the same lines with memory of its own, which may be kept, sent to a channel, and used by another thread.
    /// </summary>
    /// <inheritdoc cref="GetEnumerator" path="/exception"/>
    public LineBatch Copy() => Valid()?.Copy() ?? default;

    /// <summary>Enumerates the lines. You may do this several times.</summary>
    /// <exception cref="InvalidOperationException">
    /// The loop that returned the batch has continued, so the bytes are not valid any more.
    /// </exception>
    public Enumerator GetEnumerator() => new(Valid());

    /// <summary>Enumerates the lines with their file offsets: <c>foreach (Line line in batch.WithOffsets())</c>.</summary>
    /// <inheritdoc cref="GetEnumerator" path="/exception"/>
    public OffsetEnumerator WithOffsets() => new(Valid());

    private LineBatches? Valid() => _batches is null || _batches.Number == _number ? _batches : throw Outdated();

    private static InvalidOperationException Outdated()
        => new("A batch of lines is valid until the next step of the loop that returned it. Copy() gives one that you may keep.");

    /// <summary>Enumerates the lines of a batch.</summary>
    public ref struct Enumerator
    {
        private readonly LineBatches? _batches;
        private readonly ReadOnlySpan<byte> _bytes;
        private readonly ReadOnlySpan<int> _ends;
        private readonly int _number;
        private int _next;
        private int _start;
        private int _end;

        internal Enumerator(LineBatches? batches)
        {
            if (batches is not null)
            {
                _batches = batches;
                _number = batches.Number;
                _bytes = batches.Bytes.Span;
                _ends = batches.Ends.AsSpan(1, batches.Count);
                batches.Returned = 0;
            }
        }

        /// <summary>The current line without its line end.</summary>
        public readonly ReadOnlySpan<byte> Current => LineIndex.Line(_bytes, _start, _end - 1);

        internal readonly int Start => _start;

        internal readonly int End => _end;

        /// <summary>Moves to the next line.</summary>
        /// <inheritdoc cref="LineBatch.GetEnumerator" path="/exception"/>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public bool MoveNext()
        {
            // Without a call that takes a reference to this, so that the fields stay in registers.
            int next = _next;
            if ((uint)next >= (uint)_ends.Length)
            {
                return false;
            }

            // A step of the outer loop that was not awaited lets this one go on behind it.
            if (_batches!.Number != _number)
            {
                throw Outdated();
            }

            _start = _end;
            _end = _ends[next] + 1;
            _next = next + 1;
            _batches.Returned = _end;
            return true;
        }
    }

    /// <summary>Enumerates the lines of a batch with their file offsets.</summary>
    public ref struct OffsetEnumerator
    {
        private readonly long _offset;
        private readonly int _length;
        private Enumerator _lines;

        internal OffsetEnumerator(LineBatches? batches)
        {
            _lines = new Enumerator(batches);
            _offset = batches?.Offset ?? 0;
            _length = batches?.Length ?? 0;
        }

        /// <summary>The current line and its offsets.</summary>
        public readonly Line Current => new()
        {
            Span = _lines.Current,
            Offset = _offset + _lines.Start,
            EndOffset = _offset + Math.Min(_lines.End, _length),
        };

        /// <summary>Returns itself, for <c>foreach</c>.</summary>
        public readonly OffsetEnumerator GetEnumerator() => this;

        /// <inheritdoc cref="Enumerator.MoveNext"/>
        public bool MoveNext() => _lines.MoveNext();
    }
}
