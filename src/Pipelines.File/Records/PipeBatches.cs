namespace Pipelines.File.Records;

/// <summary>
/// Reads a pipe in batches. A batch is one span of whole items, which are lines or records. An item that crosses segments is joined, and
/// is a batch of its own. The enumerable is its own enumerator, so it can be enumerated once. One caller uses it at a time.
/// </summary>
internal abstract class PipeBatches<TBatch>(PipeReader reader, int maxLength, bool leaveOpen, CancellationToken cancellationToken)
    : IAsyncEnumerable<TBatch>, IAsyncEnumerator<TBatch>
{
    private CancellationTokenSource? _linkedTokens;
    private bool _isStarted;
    private FormatException? _error;

    // The buffer of the last read, valid until AdvanceTo, with its file offset. _segment is what is left of its current segment.
    private ReadOnlySequence<byte> _buffer;
    private long _bufferOffset;
    private bool _hasBuffer;
    private bool _isLastBuffer;
    private ReadOnlyMemory<byte> _segment;
    private SequencePosition _nextSegment;

    public abstract TBatch Current { get; }

    /// <summary>The number of the current batch. Batches with other numbers are not valid any more.</summary>
    internal int Number { get; private set; }

    /// <summary>The current batch; empty if there is none.</summary>
    internal ReadOnlyMemory<byte> Bytes { get; private set; }

    /// <summary>How many bytes of the pipe the batch is. A last line without a line end gets one in <see cref="Bytes"/>.</summary>
    internal int Length { get; private set; }

    /// <summary>
    /// The file offset of the current batch, or of the next one. If the reader is not a <see cref="FilePipeReader"/>, it counts from
    /// where the reading began.
    /// </summary>
    internal long Offset { get; private set; }

    /// <summary>How much of the current batch was returned: lines, or the bytes of records.</summary>
    internal int Returned { get; set; }

    internal int MaxLength => maxLength;

    /// <summary>Ends the enumeration.</summary>
    internal CancellationToken CancellationToken { get; private set; } = cancellationToken;

    /// <summary>
    /// The beginning of an item that crosses segments, or that the last read did not bring whole. The reader has these bytes, too, until
    /// the item was returned.
    /// </summary>
    protected ArrayBufferWriter<byte> Joined { get; } = new();

    /// <summary>Whether the buffer has bytes after <see cref="Joined"/>.</summary>
    protected bool HasMore => Offset + Joined.WrittenCount < _bufferOffset + _buffer.Length;

    /// <summary>How many bytes of the batch belong to items that were returned: a reader that is left open continues there.</summary>
    protected abstract int UsedLength { get; }

    public IAsyncEnumerator<TBatch> GetAsyncEnumerator(CancellationToken cancellationToken = default)
    {
        if (_isStarted)
        {
            throw new InvalidOperationException("The lines or records of a pipe can be enumerated only once.");
        }

        _isStarted = true;
        Offset = _bufferOffset = reader is FilePipeReader file ? file.Position : 0;
        if (cancellationToken.CanBeCanceled && cancellationToken != CancellationToken)
        {
            _linkedTokens = CancellationTokenSource.CreateLinkedTokenSource(CancellationToken, cancellationToken);
            CancellationToken = _linkedTokens.Token;
        }

        return this;
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<bool> MoveNextAsync()
    {
        if (!Bytes.IsEmpty)
        {
            int length = EndBatch();
            Returned = 0;
            SkipTo(Offset + length);
            Bytes = default;
            Number++;
        }

        while (!TryTakeBatch())
        {
            Advance(Offset, isExamined: true);
            if (_isLastBuffer)
            {
                return false;
            }

            ReadResult result = await reader.ReadAsync(CancellationToken).ConfigureAwait(false);
            if (result.IsCanceled)
            {
                reader.AdvanceTo(result.Buffer.Start);
                throw new OperationCanceledException("The read was canceled by CancelPendingRead.");
            }

            _buffer = result.Buffer;
            _hasBuffer = true;
            _isLastBuffer = result.IsCompleted;
            MoveTo(Offset + Joined.WrittenCount);
        }

        return true;
    }

    public virtual async ValueTask DisposeAsync()
    {
        long used = Offset + (Bytes.IsEmpty ? 0 : UsedLength);
        Bytes = default;
        Number++;
        _linkedTokens?.Dispose();
        try
        {
            // Later bytes do not count as examined, so the next read returns them at once.
            Advance(used, isExamined: false);
        }
        catch (Exception e) when (!leaveOpen && e is (InvalidOperationException or ArgumentOutOfRangeException))
        {
            // The caller completed the reader within the loop, which released the buffer. A reader over a stream has also emptied it, so
            // its positions are out of range.
        }
        finally
        {
            _isLastBuffer = true;
            if (!leaveOpen)
            {
                await reader.CompleteAsync().ConfigureAwait(false);
            }
        }
    }

    /// <summary>
    /// The length of the batch with which these bytes of one segment begin; 0 if they hold no whole item; -1 after <see cref="SkipTo"/>.
    /// </summary>
    protected abstract int Measure(ReadOnlySpan<byte> segment);

    /// <summary>How many bytes of the next segment are to be joined.</summary>
    protected abstract int MeasureJoin(ReadOnlySpan<byte> segment);

    /// <summary>As <see cref="Measure"/>, of the bytes that were joined, which begin with the item that crosses segments.</summary>
    /// <param name="joined">The bytes that were joined.</param>
    /// <param name="isEnd">Whether the pipe ends after them.</param>
    protected abstract int MeasureJoined(ReadOnlySpan<byte> joined, bool isEnd);

    /// <summary>Ends the current batch, and returns the length of its items.</summary>
    protected abstract int EndBatch();

    /// <summary>Records the error that ends the enumeration. Every later step throws it again.</summary>
    protected FormatException Fail(FormatException error) => _error = error;

    /// <summary>Continues at a later offset, which may be behind the buffer.</summary>
    protected void SkipTo(long offset)
    {
        long length = offset - Offset;
        Offset = offset;
        if (Joined.WrittenCount == 0 && length <= _segment.Length)
        {
            _segment = _segment[(int)length..];
            return;
        }

        Joined.ResetWrittenCount();
        MoveTo(offset);
    }

    private bool TryTakeBatch()
    {
        if (_error is not null)
        {
            throw _error;
        }

        int length = 0;
        bool isMore = true;
        while (length <= 0 && isMore)
        {
            while (_segment.IsEmpty && _buffer.TryGet(ref _nextSegment, out _segment))
            {
                // The end of a sequence is an empty segment, which a parser need not understand.
            }

            bool isFirst = Joined.WrittenCount == 0;
            if (!_segment.IsEmpty)
            {
                // Here, too, and not only in reads: one read may hold a great many items.
                CancellationToken.ThrowIfCancellationRequested();
                length = isFirst ? Measure(_segment.Span) : 0;
                if (length > 0)
                {
                    Bytes = _segment[..length];
                }
                else if (length == 0)
                {
                    int added = isFirst ? _segment.Length : MeasureJoin(_segment.Span);
                    Joined.Write(_segment.Span[..added]);
                    _segment = _segment[added..];
                    length = TakeJoined(isEnd: false);
                }
            }
            else
            {
                // An item that the end cuts off. After SkipTo there may be bytes again, and whole items in them.
                isMore = _isLastBuffer && !isFirst;
                length = isMore ? TakeJoined(isEnd: true) : 0;
            }
        }

        Length = length;
        return length > 0;
    }

    private int TakeJoined(bool isEnd)
    {
        int length = Joined.WrittenCount == 0 ? 0 : MeasureJoined(Joined.WrittenSpan, isEnd);
        if (length > 0)
        {
            // All of them: the parser of a record may look at bytes behind it.
            Bytes = Joined.WrittenMemory;
        }

        return length;
    }

    private void MoveTo(long offset)
    {
        _segment = default;
        _nextSegment = _buffer.GetPosition(Math.Min(offset - _bufferOffset, _buffer.Length));
    }

    /// <summary>Advances the reader to an offset, which may be behind its buffer.</summary>
    private void Advance(long offset, bool isExamined)
    {
        (ReadOnlySequence<byte> buffer, bool hasBuffer) = (_buffer, _hasBuffer);
        (_buffer, _hasBuffer, _segment, _nextSegment) = (default, false, default, default);

        // The reader of PipeReader.Create(ReadOnlySequence<byte>) refuses a position of an empty buffer. A reader that is completed next
        // needs no AdvanceTo.
        if (hasBuffer && (!_isLastBuffer || leaveOpen || !buffer.IsEmpty))
        {
            long used = Math.Min(offset - _bufferOffset, buffer.Length);
            _bufferOffset += used;
            SequencePosition consumed = buffer.GetPosition(used);
            reader.AdvanceTo(consumed, isExamined ? buffer.End : consumed);
        }
    }
}
