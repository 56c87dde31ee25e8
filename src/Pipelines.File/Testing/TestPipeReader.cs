using System.Buffers;
using System.IO.Pipelines;

namespace Pipelines.File.Testing;

/// <summary>
/// A reader over bytes of a test, which come as badly as bytes can: in given pieces, one byte a segment, late, with an error in between. A segment is overwritten when
/// all of it was consumed, so that a parser that keeps what is not its own any more is found.
/// </summary>
/// <remarks>A read brings one more piece when everything was examined, and the same bytes again when not, as a <see cref="Pipe"/> does; two reads at once and positions of other buffers
/// throw likewise.</remarks>
public sealed class TestPipeReader : PipeReader, IDisposable
{
    private readonly IEnumerator<ReadOnlyMemory<byte>> _pieces;

    private readonly Pipe _pipe = new(new PipeOptions(
        new ExactMemory(), PipeScheduler.Inline, PipeScheduler.Inline, pauseWriterThreshold: 0, minimumSegmentSize: 1, useSynchronizationContext: false));

    private ReadOnlySequence<byte>? _buffer;
    private ReadOnlyMemory<byte> _next;
    private long _given;
    private bool _isWritten;

    // Nothing is left to examine, so that the next read needs another piece.
    private bool _isExamined = true;

    /// <summary>Makes one that brings everything in one read, unless <see cref="PieceSize"/> is set.</summary>
    /// <param name="bytes">The content.</param>
    public TestPipeReader(ReadOnlyMemory<byte> bytes)
        : this([bytes])
    {
    }

    /// <summary>Makes one that brings a piece a read.</summary>
    /// <param name="pieces">The content. It is enumerated as it is read; empty pieces are left out.</param>
    public TestPipeReader(IEnumerable<ReadOnlyMemory<byte>> pieces)
    {
        ArgumentNullException.ThrowIfNull(pieces);
        _pieces = pieces.GetEnumerator();
    }

    /// <summary>The most bytes that a read brings; by default as many as the pieces have.</summary>
    /// <exception cref="ArgumentOutOfRangeException">Less than 1.</exception>
    public int PieceSize
    {
        get;
        init
        {
            ArgumentOutOfRangeException.ThrowIfLessThan(value, 1);
            field = value;
        }
    }
    = int.MaxValue;

    /// <summary>The most bytes of one segment of the buffer; 1 puts every byte in a segment of its own. By default every piece is one segment.</summary>
    /// <exception cref="ArgumentOutOfRangeException">Less than 1.</exception>
    public int SegmentSize
    {
        get;
        init
        {
            ArgumentOutOfRangeException.ThrowIfLessThan(value, 1);
            field = value;
        }
    }
    = int.MaxValue;

    /// <summary>Whether every piece comes later: a read that needs one is not complete when it returns, and TryRead finds none. <see langword="false"/> by default.</summary>
    public bool IsLate { get; init; }

    /// <summary>Where reading fails, bytes from the beginning: what is before comes, then every read throws <see cref="Error"/>. <see langword="null"/>, the default: nowhere, and neither behind the end.</summary>
    public long? FailsAt { get; init; }

    /// <summary>What reading fails with at <see cref="FailsAt"/>; an <see cref="IOException"/> by default.</summary>
    public Exception Error { get; init; } = new IOException("The read failed, as the test has asked for.");

    /// <summary>Bytes that the parser has consumed.</summary>
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
        ReadOnlySequence<byte> buffer = _buffer ?? throw new InvalidOperationException("AdvanceTo without a read before it.");
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

    private void WriteNext()
    {
        if (_isWritten)
        {
            return;
        }

        bool isEnd = !MoveNext();
        long left = FailsAt - _given ?? long.MaxValue;
        if (isEnd || left == 0)
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

        // Complete at once: the pipe never asks a writer to wait.
        _ = _pipe.Writer.FlushAsync().AsTask();
    }

    /// <summary>Whether there is a byte left in <see cref="_next"/>, or in the pieces behind it.</summary>
    private bool MoveNext()
    {
        while (_next.IsEmpty)
        {
            if (!_pieces.MoveNext())
            {
                return false;
            }

            _next = _pieces.Current;
        }

        return true;
    }

    /// <summary>Memory of exactly the size that is asked for, which is overwritten when it is given back.</summary>
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
