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

    // What is left of the buffer of the last read, which is valid until AdvanceTo. It begins at Offset.
    private ReadOnlySequence<byte> _rest;
    private bool _hasBuffer;
    private bool _isLastBuffer;

    // How many bytes of the next reads are left out, because Offset is behind the buffer.
    private long _toSkip;

    public abstract TBatch Current { get; }

    /// <summary>The number of the current batch. Batches with other numbers are not valid any more.</summary>
    internal int Number { get; private set; }

    /// <summary>The current batch; empty if there is none.</summary>
    internal ReadOnlyMemory<byte> Bytes { get; private set; }

    /// <summary>How many bytes of the pipe the batch is. A last line without a line end gets one in <see cref="Bytes"/>.</summary>
    internal int Length => (int)Math.Min(Bytes.Length, _rest.Length);

    /// <summary>
    /// The file offset of the current batch, or of the next one. If the reader is not a <see cref="FilePipeReader"/>, it counts from
    /// where the reading began.
    /// </summary>
    internal long Offset { get; private set; }

    /// <summary>
    /// How many bytes of the current batch belong to items that were returned: a reader that is left open continues there.
    /// </summary>
    internal int Returned { get; set; }

    internal int MaxLength => maxLength;

    /// <summary>Ends the enumeration.</summary>
    internal CancellationToken CancellationToken { get; private set; } = cancellationToken;

    /// <summary>The reader of a copied batch, which nobody reads from.</summary>
    protected static PipeReader Nothing { get; } = PipeReader.Create(ReadOnlySequence<byte>.Empty);

    /// <summary>How many bytes the next read waits for, from <see cref="Offset"/> on, unless the pipe ends before; 0: any.</summary>
    protected int Wanted { get; set; }

    /// <summary>Whether the reader has a part of a file only.</summary>
    protected bool IsPartOfFile => reader is FilePipeReader { IsPart: true };

    /// <summary>Whether nobody else's bytes are waited for: more of them are there, or the end is.</summary>
    protected bool IsWholeFile => reader is FilePipeReader { IsWhole: true };

    /// <summary>
    /// A copy of the first bytes of the buffer, if an item crosses segments there, or did not come whole with the last read.
    /// </summary>
    protected ArrayBufferWriter<byte> Joined { get; } = new();

    public IAsyncEnumerator<TBatch> GetAsyncEnumerator(CancellationToken cancellationToken = default)
    {
        if (_isStarted)
        {
            throw new InvalidOperationException("The lines or records of a pipe can be enumerated only once.");
        }

        _isStarted = true;
        Offset = reader is FilePipeReader file ? file.Position : 0;
        if (cancellationToken.CanBeCanceled && cancellationToken != CancellationToken)
        {
            _linkedTokens = CancellationTokenSource.CreateLinkedTokenSource(CancellationToken, cancellationToken);
            CancellationToken = _linkedTokens.Token;
        }

        return this;
    }

    public async ValueTask<bool> MoveNextAsync()
    {
        if (!Bytes.IsEmpty)
        {
            SkipTo(Offset + EndBatch());
            Returned = 0;
            Bytes = default;
            Number++;
        }

        while (!TryTakeBatch())
        {
            Advance(0, isExamined: true);
            if (_isLastBuffer)
            {
                return false;
            }

            ValueTask<ReadResult> read = Wanted > 0 ? reader.ReadAtLeastAsync(Wanted, CancellationToken)
                : reader.ReadAsync(CancellationToken);
            ReadResult result = await read.ConfigureAwait(false);
            ReadOnlySequence<byte> buffer = result.Buffer;
            if (result.IsCanceled)
            {
                reader.AdvanceTo(buffer.Start);
                throw new OperationCanceledException("The read was canceled by CancelPendingRead.");
            }

            // The reader of PipeReader.Create(ReadOnlySequence<byte>) refuses a position of an empty buffer. A reader that is completed
            // next needs no AdvanceTo.
            _isLastBuffer = result.IsCompleted;
            _hasBuffer = !_isLastBuffer || leaveOpen || !buffer.IsEmpty;
            long skipped = Math.Min(_toSkip, buffer.Length);
            _toSkip -= skipped;
            _rest = buffer.Slice(skipped);
        }

        return true;
    }

    public virtual async ValueTask DisposeAsync()
    {
        int used = Math.Min(Returned, Length);
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
    /// The length of the batch with which these bytes begin; 0 if more bytes may complete its first item; -1 after <see cref="SkipTo"/>.
    /// </summary>
    /// <param name="bytes">Bytes of one segment, or those of <see cref="Joined"/>.</param>
    /// <param name="known">How many of them were seen before, and hold no whole item.</param>
    /// <param name="isEnd">Whether the pipe ends after them, which are joined.</param>
    protected abstract int Measure(ReadOnlySpan<byte> bytes, int known, bool isEnd);

    /// <summary>How many more bytes are joined, if there are so many.</summary>
    /// <param name="known">How many bytes hold no whole item.</param>
    /// <param name="next">The bytes behind these.</param>
    protected abstract long MeasureJoin(int known, ReadOnlySequence<byte> next);

    /// <summary>Ends the current batch, and returns the length of its items.</summary>
    protected abstract int EndBatch();

    /// <summary>Records the error that ends the enumeration. Every later step throws it again.</summary>
    protected FormatException Fail(FormatException error) => _error = error;

    /// <summary>Continues at a later offset, which may be behind the buffer.</summary>
    protected void SkipTo(long offset)
    {
        long length = offset - Offset;
        long skipped = Math.Min(length, _rest.Length);
        _toSkip = length - skipped;
        _rest = _rest.Slice(skipped);
        Offset = offset;
        Wanted = 0;
        Joined.ResetWrittenCount();
    }

    /// <summary>Takes the current batch of another one, with memory of its own, for ever.</summary>
    protected void HoldCopyOf(PipeBatches<TBatch> other)
    {
        byte[] bytes = other.Bytes.ToArray();
        (Bytes, Offset, _rest) = (bytes, other.Offset, new(bytes, 0, other.Length));
    }

    private bool TryTakeBatch()
    {
        if (_error is not null)
        {
            throw _error;
        }

        while (!_rest.IsEmpty)
        {
            // Here, too, and not only in reads: one read may hold a great many items.
            CancellationToken.ThrowIfCancellationRequested();
            int length = 0;
            int known = Joined.WrittenCount;
            if (known == 0 && _rest.First is { IsEmpty: false } segment)
            {
                length = Measure(segment.Span, known, isEnd: false);
                Bytes = segment[..Math.Max(0, length)];
                known = segment.Length;
            }

            if (length == 0)
            {
                // All of an item's segments at once: from the beginning to each of them would take a time that grows with its square.
                long wanted = Math.Min(known + MeasureJoin(known, _rest.Slice(known)), _rest.Length);
                foreach (ReadOnlyMemory<byte> memory in _rest.Slice(Joined.WrittenCount, wanted - Joined.WrittenCount))
                {
                    Joined.Write(memory.Span);
                }

                bool isAll = wanted == _rest.Length;
                length = Measure(Joined.WrittenSpan, known, isAll && _isLastBuffer);
                Bytes = Joined.WrittenMemory[..Math.Max(0, length)];
                if (isAll && length == 0)
                {
                    return false;
                }
            }

            if (length > 0)
            {
                return true;
            }
        }

        return false;
    }

    /// <summary>Advances the reader over so many bytes of the rest.</summary>
    private void Advance(int length, bool isExamined)
    {
        (ReadOnlySequence<byte> rest, bool hasBuffer) = (_rest, _hasBuffer);
        (_rest, _hasBuffer) = (default, false);
        if (hasBuffer)
        {
            SequencePosition consumed = rest.GetPosition(length);
            reader.AdvanceTo(consumed, isExamined ? rest.End : consumed);
        }
    }
}
