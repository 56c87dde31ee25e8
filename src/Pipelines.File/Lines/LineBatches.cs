namespace Pipelines.File.Lines;

/// <summary>
/// Reads a pipe in batches. A batch ends after the last whole line of a read; <see cref="LineWalk"/> finds the lines in it. The incomplete
/// line at the end of a read is searched once, and begins the next batch. It can be enumerated once, because the enumerable is its own
/// enumerator. One caller uses it at a time.
/// </summary>
internal sealed class LineBatches(PipeReader reader, int maxLength, bool leaveOpen, CancellationToken cancellationToken)
    : IAsyncEnumerable<LineBatch>, IAsyncEnumerator<LineBatch>
{
    // The memory for lines that cross segments.
    private readonly ArrayBufferWriter<byte> _joined = new();

    private CancellationTokenSource? _linkedTokens;
    private bool _isStarted;
    private bool _isEnded;
    private LineTooLongException? _tooLong;

    // The buffer of the last read. Valid while _hasBuffer is true, which is until AdvanceTo.
    private ReadOnlySequence<byte> _buffer;
    private bool _hasBuffer;
    private bool _isLastBuffer;

    // The number of lines in earlier batches; and in the current one, if a walk has come to its end.
    private long _linesBefore;
    private long? _linesOfBatch;

    public LineBatch Current => new(this, Number);

    internal int MaxLength => maxLength;

    /// <summary>The number of the current batch. Batches with other numbers are not valid any more.</summary>
    internal int Number { get; private set; }

    /// <summary>
    /// The bytes of the current batch: whole lines with their line ends. Only the last line of the pipe may lack its line end.
    /// </summary>
    internal ReadOnlySequence<byte> Bytes { get; private set; }

    /// <summary>
    /// The file offset of <see cref="Bytes"/>. If the reader is not a <see cref="FilePipeReader"/>, it counts from where the reading of
    /// lines began.
    /// </summary>
    internal long Offset { get; private set; }

    /// <summary>How many bytes at the beginning of <see cref="Bytes"/>, or of the next batch, are known to hold no line feed.</summary>
    internal long Searched { get; private set; }

    /// <summary>The offset after the last line that was returned, where a reader that is left open continues.</summary>
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

        // Bytes after Used do not count as examined, so the next read returns them at once.
        bool isAdvanced = _hasBuffer && (leaveOpen || !_buffer.IsEmpty);
        _hasBuffer = false;
        return PipeReaderRecordExtensions.LeaveAsync(reader, isAdvanced ? _buffer : null, Used - Offset, leaveOpen);
    }

    /// <summary>Records the number of lines in the batch, after a walk to its end.</summary>
    internal void Count(long lines) => _linesOfBatch = lines;

    /// <summary>Creates the exception for the line at <see cref="Used"/>, which is too long. Every later step throws it again.</summary>
    internal LineTooLongException TooLong()
        => _tooLong = new(_linesBefore + CountLineFeeds(Bytes.Slice(0, Used - Offset)) + 1, MaxLength);

    /// <summary>Joins a line that crosses segments. The span is valid until the next such line.</summary>
    internal ReadOnlySpan<byte> Join(ReadOnlySequence<byte> line) => _joined.Join(line).Span;

    /// <summary>Counts the lines of the current batch, and advances the reader: the batch is consumed, the rest examined.</summary>
    private void EndBatch()
    {
        Number++;
        _linesBefore += _linesOfBatch ?? CountLineFeeds(Bytes);
        _linesOfBatch = null;
        Searched = _buffer.Length - Bytes.Length;
        Used = Offset += Bytes.Length;
        SequencePosition end = Bytes.End;
        Bytes = default;

        // The first byte over the maximum may be the CR of the line end.
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
            // The reader of PipeReader.Create(ReadOnlySequence<byte>) refuses a position of an empty buffer. A reader that is completed
            // next needs no AdvanceTo, so an empty buffer is skipped.
            reader.AdvanceTo(end);
        }
    }

    /// <summary>
    /// The position after the last line feed of the buffer, of which the first <see cref="Searched"/> bytes hold none; its beginning if
    /// there is none.
    /// </summary>
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
