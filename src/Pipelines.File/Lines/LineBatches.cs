namespace Pipelines.File.Lines;

/// <summary>
/// What a pipe gives, cut behind the last whole line of each read; once: the enumerable is its own enumerator, and one caller uses it at a
/// time. Where the lines are is for whoever walks through a batch to find. The part of a line that a read ends with is searched once, and
/// comes again at the beginning of the next batch.
/// </summary>
internal sealed class LineBatches(PipeReader reader, int maxLength, bool leaveOpen, CancellationToken cancellationToken)
    : IAsyncEnumerable<LineBatch>, IAsyncEnumerator<LineBatch>
{
    // Of lines that cross segments.
    private readonly ArrayBufferWriter<byte> _joined = new();

    private CancellationTokenSource? _linkedTokens;
    private bool _isStarted;
    private bool _isEnded;
    private LineTooLongException? _tooLong;

    // What the last read gave, while _hasBuffer says so: until the reader is told how much of it was used.
    private ReadOnlySequence<byte> _buffer;
    private bool _hasBuffer;
    private bool _isLastBuffer;

    // Lines of earlier batches, and those of the current one where its walk has come to the end.
    private long _linesBefore;
    private long? _linesOfBatch;

    public LineBatch Current => new(this, Number);

    internal int MaxLength => maxLength;

    /// <summary>The number of the current batch: an older one is not valid any more.</summary>
    internal int Number { get; private set; }

    /// <summary>
    /// The bytes of the current batch: whole lines with their ends, of which only the very last of the pipe may lack one.
    /// </summary>
    internal ReadOnlySequence<byte> Bytes { get; private set; }

    /// <summary>
    /// The file offset of <see cref="Bytes"/>; from where the reading of lines began, where the reader is none of a file.
    /// </summary>
    internal long Offset { get; private set; }

    /// <summary>So many bytes at the beginning of <see cref="Bytes"/>, or of the next batch, are known to hold no line feed.</summary>
    internal long Searched { get; private set; }

    /// <summary>The offset behind the last line that was given: where a reader that is left open goes on.</summary>
    internal long Used { get; set; }

    /// <summary>Ends the enumeration.</summary>
    internal CancellationToken CancellationToken { get; private set; } = cancellationToken;

    public IAsyncEnumerator<LineBatch> GetAsyncEnumerator(CancellationToken cancellationToken = default)
    {
        if (_isStarted)
        {
            throw new InvalidOperationException("The lines of a pipe can be enumerated only once.");
        }

        _isStarted = true;
        Offset = Used = reader is FilePipeReader file ? file.Position : 0;
        if (CancellationToken.CanBeCanceled && cancellationToken.CanBeCanceled && cancellationToken != CancellationToken)
        {
            _linkedTokens = CancellationTokenSource.CreateLinkedTokenSource(CancellationToken, cancellationToken);
        }

        CancellationToken = _linkedTokens?.Token ?? (cancellationToken.CanBeCanceled ? cancellationToken : CancellationToken);
        return this;
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<bool> MoveNextAsync()
    {
        if (_tooLong is not null)
        {
            throw _tooLong;
        }

        do
        {
            if (_hasBuffer)
            {
                EndBatch();
            }

            if (_isEnded)
            {
                return false;
            }

            ReadResult result = await reader.ReadAsync(CancellationToken).ConfigureAwait(false);
            _buffer = result.Buffer;
            if (result.IsCanceled)
            {
                reader.AdvanceTo(_buffer.Start);
                throw new OperationCanceledException("The reading of lines was canceled by CancelPendingRead.");
            }

            _hasBuffer = true;
            _isLastBuffer = result.IsCompleted;
            Bytes = _isLastBuffer ? _buffer : _buffer.Slice(0, EndOfLastLine());
        }
        while (Bytes.IsEmpty);
        return true;
    }

    public ValueTask DisposeAsync()
    {
        Number++;
        _isEnded = true;
        _linkedTokens?.Dispose();

        // What is behind does not count as examined, so that the next read gives it without waiting for more.
        bool isAdvanced = _hasBuffer && (leaveOpen || !_buffer.IsEmpty);
        _hasBuffer = false;
        return PipeReaderRecordExtensions.LeaveAsync(reader, isAdvanced ? _buffer : null, Used - Offset, leaveOpen);
    }

    /// <summary>Somebody has walked through the whole batch, and knows how many lines there are.</summary>
    internal void Count(long lines) => _linesOfBatch = lines;

    /// <summary>Refuses the line behind <see cref="Used"/>, now and for ever.</summary>
    internal LineTooLongException TooLong()
        => _tooLong = new(_linesBefore + CountLineFeeds(Bytes.Slice(0, Used - Offset)) + 1, MaxLength);

    /// <summary>The bytes of a line that crosses segments, in one piece until the next such line.</summary>
    internal ReadOnlySpan<byte> Join(ReadOnlySequence<byte> line) => _joined.Join(line).Span;

    /// <summary>Counts the current batch, and tells the reader that it was used, and that the rest is searched.</summary>
    private void EndBatch()
    {
        Number++;
        _linesBefore += _linesOfBatch ?? CountLineFeeds(Bytes);
        _linesOfBatch = null;
        Searched = _buffer.Length - Bytes.Length;
        Used = Offset += Bytes.Length;
        SequencePosition end = Bytes.End;
        Bytes = default;

        // One more may be the CR of its line end.
        if (Searched - 1 > MaxLength)
        {
            _buffer = _buffer.Slice(end);
            throw TooLong();
        }

        _isEnded = _isLastBuffer;
        _hasBuffer = false;
        if (!_isEnded)
        {
            reader.AdvanceTo(end, _buffer.End);
        }
        else if (leaveOpen || !_buffer.IsEmpty)
        {
            // PipeReader.Create(ReadOnlySequence<byte>) takes no position of an empty buffer; a reader that is completed next needs none.
            reader.AdvanceTo(end);
        }
    }

    /// <summary>Behind the last line feed of what is not searched yet; the beginning where there is none.</summary>
    private SequencePosition EndOfLastLine()
    {
        SequencePosition end = _buffer.Start;
        SequencePosition segment = _buffer.GetPosition(Searched);
        for (SequencePosition next = segment; _buffer.TryGet(ref next, out ReadOnlyMemory<byte> memory); segment = next)
        {
            int index = memory.Span.LastIndexOf((byte)'\n');
            end = index < 0 ? end : _buffer.GetPosition(index + 1, segment);
        }

        return end;
    }

    private static long CountLineFeeds(ReadOnlySequence<byte> bytes)
    {
        long count = 0;
        foreach (ReadOnlyMemory<byte> memory in bytes)
        {
            count += memory.Span.Count((byte)'\n');
        }

        return count;
    }
}
