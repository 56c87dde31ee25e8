namespace Pipelines.File.Testing;

/// <summary>
/// A reader for tests of parsers, which returns given bytes in the most difficult ways: in pieces, one byte a segment, late, or with an
/// error. When a segment is consumed, the reader overwrites it, so a test finds a parser that still uses it.
/// </summary>
/// <remarks>
/// It behaves as the reader of a <see cref="Pipe"/> does. A read returns one more piece if everything was examined, and the same bytes
/// again if not. Two reads at once, and positions of other buffers, throw.
/// </remarks>
public sealed class TestPipeReader : PipeReader, IDisposable
{
    private readonly IEnumerator<ReadOnlyMemory<byte>> _pieces;

    private readonly Pipe _pipe = new(new PipeOptions(
        new ExactMemory(), PipeScheduler.Inline, PipeScheduler.Inline, pauseWriterThreshold: 0, minimumSegmentSize: 1,
            useSynchronizationContext: false));

    private ReadOnlySequence<byte>? _buffer;
    private ReadOnlyMemory<byte> _next;
    private long _given;
    private bool _isWritten;

    // Everything was examined, so the next read needs another piece.
    private bool _isExamined = true;

    /// <summary>Creates a reader that returns everything in one read, unless <see cref="PieceSize"/> is set.</summary>
    /// <param name="bytes">The content.</param>
    public TestPipeReader(ReadOnlyMemory<byte> bytes)
        : this([bytes])
    {
    }

    /// <summary>Creates a reader that returns one piece in each read.</summary>
    /// <param name="pieces">The content. It is enumerated as it is read; empty pieces are skipped.</param>
    public TestPipeReader(IEnumerable<ReadOnlyMemory<byte>> pieces)
    {
        ArgumentNullException.ThrowIfNull(pieces);
        _pieces = pieces.GetEnumerator();
    }

    /// <summary>The maximum number of bytes that one read adds; by default the length of the piece.</summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is less than 1.</exception>
    public int PieceSize { get; init => field = AtLeast(value, 1); } = int.MaxValue;

    /// <summary>
    /// The maximum number of bytes in one segment of the buffer; 1 puts every byte into a segment of its own. By default every piece is one
    /// segment.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is less than 1.</exception>
    public int SegmentSize { get; init => field = AtLeast(value, 1); } = int.MaxValue;

    /// <summary>
    /// Whether every piece comes later; <see langword="false"/> by default. A read that needs a piece is then not complete when it returns,
    /// and TryRead does not find the piece.
    /// </summary>
    public bool IsLate { get; init; }

    /// <summary>
    /// The number of bytes after which reading fails: the bytes before it come, then every read throws <see cref="Error"/>.
    /// <see langword="null"/>, the default, never fails.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">The number is negative.</exception>
    public long? FailsAt { get; init => field = value is { } bytes ? AtLeast(bytes, 0) : null; }

    /// <summary>The exception that reading throws at <see cref="FailsAt"/>; an <see cref="IOException"/> by default.</summary>
    public Exception Error { get; init; } = new IOException("The read failed, as the test asked.");

    /// <summary>The number of bytes that the parser has consumed.</summary>
    public long Consumed { get; private set; }

    /// <summary>Whether the parser has completed the reader.</summary>
    public bool IsCompleted { get; private set; }

    /// <inheritdoc/>
    public override bool TryRead(out ReadResult result)
    {
        if (_isExamined && !IsLate)
        {
            WriteNext();
        }

        bool isRead = _pipe.Reader.TryRead(out result);
        _buffer = isRead ? result.Buffer : _buffer;
        return isRead;
    }

    /// <inheritdoc/>
    public override async ValueTask<ReadResult> ReadAsync(CancellationToken cancellationToken = default)
    {
        if (_isExamined && !IsCompleted)
        {
            if (IsLate)
            {
                await Task.Yield();
            }

            WriteNext();
        }

        ReadResult result = await _pipe.Reader.ReadAsync(cancellationToken).ConfigureAwait(false);
        _buffer = result.Buffer;
        return result;
    }

    /// <inheritdoc/>
    public override void AdvanceTo(SequencePosition consumed) => AdvanceTo(consumed, consumed);

    /// <inheritdoc/>
    public override void AdvanceTo(SequencePosition consumed, SequencePosition examined)
    {
        ReadOnlySequence<byte> buffer = _buffer ?? throw new InvalidOperationException("AdvanceTo was called without a read before it.");
        long taken = buffer.Slice(0, consumed).Length;
        bool isExamined = buffer.Slice(examined).IsEmpty;
        _pipe.Reader.AdvanceTo(consumed, examined);
        Consumed += taken;
        _isExamined = isExamined;
        _buffer = null;
    }

    /// <inheritdoc/>
    public override void CancelPendingRead() => _pipe.Reader.CancelPendingRead();

    /// <inheritdoc/>
    public override void Complete(Exception? exception = null)
    {
        IsCompleted = true;
        _pipe.Reader.Complete(exception);
        _pieces.Dispose();
    }

    /// <summary>Completes the reader.</summary>
    public void Dispose() => Complete();

    private static T AtLeast<T>(T value, T least, [CallerMemberName] string option = "")
        where T : IComparable<T>
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(value, least, option);
        return value;
    }

    private void WriteNext()
    {
        if (_isWritten)
        {
            return;
        }

        while (_next.IsEmpty && _pieces.MoveNext())
        {
            _next = _pieces.Current;
        }

        long left = FailsAt - _given ?? long.MaxValue;
        if (_next.IsEmpty || left == 0)
        {
            _isWritten = true;
            _pipe.Writer.Complete(left == 0 ? Error : null);
            return;
        }

        int length = (int)Math.Min(Math.Min(_next.Length, PieceSize), left);
        for (ReadOnlySpan<byte> piece = _next.Span[..length]; !piece.IsEmpty;)
        {
            int segment = Math.Min(piece.Length, SegmentSize);
            piece[..segment].CopyTo(_pipe.Writer.GetSpan(segment));
            _pipe.Writer.Advance(segment);
            piece = piece[segment..];
        }

        _given += length;
        _next = _next[length..];

        // Completes synchronously: with a pauseWriterThreshold of 0 the pipe never makes its writer wait.
        _ = _pipe.Writer.FlushAsync().AsTask();
    }

    /// <summary>Rents memory of exactly the requested size, and overwrites it when it is returned.</summary>
    private sealed class ExactMemory : MemoryPool<byte>
    {
        public override int MaxBufferSize => int.MaxValue;

        public override IMemoryOwner<byte> Rent(int minBufferSize = -1) => new Owner(minBufferSize);

        protected override void Dispose(bool disposing)
        {
        }

        private sealed class Owner(int size) : IMemoryOwner<byte>
        {
            public Memory<byte> Memory { get; } = new byte[size];

            public void Dispose() => Memory.Span.Fill(0xDB);
        }
    }
}
