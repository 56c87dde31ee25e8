using System.Buffers;
using System.IO.Pipelines;
using System.Numerics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Runtime.Intrinsics;

namespace Pipelines.File;

/// <summary>The lines of a pipe, once: the enumerable is its own enumerator, and one caller uses it at a time.</summary>
/// <remarks>
/// The line feeds of many lines are searched for together and kept in a small table, so that most steps are a look into that table. It is for lines that lie within one array,
/// which is nearly all of them. A line that crosses segments, or lies in memory that is no array, is found by itself.
/// </remarks>
internal sealed class PipeReaderLines : IAsyncEnumerable<ReadOnlySequence<byte>>, IAsyncEnumerator<ReadOnlySequence<byte>>
{
    /// <summary>Bytes that are compared at once, and so the most line ends that one comparison finds.</summary>
    private const int BlockSize = 64;

    /// <summary>Line feeds that are found ahead at most, plus one block's. With lines of ordinary length their bytes are still in the L1 or L2 cache when the caller gets them.</summary>
    private const int TableSize = 4 * BlockSize;

    private readonly PipeReader _reader;
    private readonly int _maxLength;
    private readonly bool _leaveOpen;
    private CancellationToken _cancellationToken;
    private CancellationTokenSource? _linkedTokens;
    private bool _isStarted;
    private bool _isEnded;

    // What the last read gave, while _hasBuffer says so: until the reader is told how much of it was used.
    private ReadOnlySequence<byte> _buffer;
    private SequencePosition _nextPiece;
    private bool _hasBuffer;
    private bool _isLastBuffer;

    // The piece of the buffer that is searched, as a part of an array, or as memory that is none (_array is null then, and indexes begin at 0).
    private ReadOnlyMemory<byte> _piece;
    private SequencePosition _piecePosition;
    private byte[]? _array;
    private int _pieceStart;
    private int _pieceEnd;

    // How far the piece is searched, and where the line after the current one begins, unless that was in front of the piece:
    // then it begins at _carriedStart, and _carried bytes of it, which hold no line end, are in front of the piece.
    private int _searched;
    private int _afterLine;
    private long _carried;
    private SequencePosition _carriedStart;

    // The table: line feeds of the piece, of which those from _next on are not used yet. A line of the table that is too long stays there.
    private int[] _lineFeeds = [];
    private int _next;
    private int _count;

    // Lines that were given before those of the table.
    private long _linesBefore;

    // The current line: _length bytes of _lineArray from _from, or where that is null, _line. _lineArray is _array while the table has lines.
    private byte[]? _lineArray;
    private int _from;
    private int _length;
    private ReadOnlySequence<byte> _line;

    internal PipeReaderLines(PipeReader reader, int maxLength, bool leaveOpen, CancellationToken cancellationToken)
    {
        _reader = reader;
        _maxLength = maxLength;
        _leaveOpen = leaveOpen;
        _cancellationToken = cancellationToken;
    }

    // Made when it is asked for: to store it in a field for every line would cost two write barriers.
    public ReadOnlySequence<byte> Current => _lineArray is { } array ? new ReadOnlySequence<byte>(array, _from, _length) : _line;

    private SequencePosition NextLine => _carried > 0 ? _carriedStart : PositionOf(_afterLine);

    public IAsyncEnumerator<ReadOnlySequence<byte>> GetAsyncEnumerator(CancellationToken cancellationToken = default)
    {
        if (_isStarted)
        {
            throw new InvalidOperationException("The lines of a pipe can be enumerated once: what was read is gone.");
        }

        _isStarted = true;
        if (!_cancellationToken.CanBeCanceled)
        {
            _cancellationToken = cancellationToken;
        }
        else if (cancellationToken.CanBeCanceled && cancellationToken != _cancellationToken)
        {
            _linkedTokens = CancellationTokenSource.CreateLinkedTokenSource(_cancellationToken, cancellationToken);
            _cancellationToken = _linkedTokens.Token;
        }

        return this;
    }

    public ValueTask<bool> MoveNextAsync() => TryMoveInTable() ? new ValueTask<bool>(true) : MoveBeyondTableAsync();

    public async ValueTask DisposeAsync()
    {
        _linkedTokens?.Dispose();
        _isEnded = true;
        if (!_leaveOpen)
        {
            await _reader.CompleteAsync().ConfigureAwait(false);
        }
        else if (_hasBuffer)
        {
            // The current line is used. Nothing behind it counts as examined, so that the next read gives it without waiting for more.
            _hasBuffer = false;
            _reader.AdvanceTo(NextLine);
        }
    }

    private bool TryMoveInTable()
    {
        int next = _next;
        if (next >= _count)
        {
            return false;
        }

        int from = _afterLine;
        int lineFeed = _lineFeeds[next];
        int length = lineFeed - from;
        if (length > 0 && _lineArray![lineFeed - 1] == '\r')
        {
            length--;
        }

        if (length > _maxLength)
        {
            return false;
        }

        _next = next + 1;
        _from = from;
        _length = length;
        _afterLine = lineFeed + 1;
        return true;
    }

    private ValueTask<bool> MoveBeyondTableAsync()
    {
        if (_next < _count)
        {
            return ValueTask.FromException<bool>(TooLong());
        }

        _linesBefore += _count;
        _next = _count = 0;
        _lineArray = null;
        if (_isEnded)
        {
            return new ValueTask<bool>(false);
        }

        // Here, too, and not in reads alone: one read may give a great many lines.
        if (_cancellationToken.IsCancellationRequested)
        {
            return ValueTask.FromCanceled<bool>(_cancellationToken);
        }

        try
        {
            return TryFindLine() ? new ValueTask<bool>(true) : ReadLineAsync();
        }
        catch (LineTooLongException e)
        {
            return ValueTask.FromException<bool>(e);
        }
    }

    /// <summary>Goes on to the next line where its end is in the buffer. <see langword="false"/>: the whole buffer is searched.</summary>
    private bool TryFindLine()
    {
        while (true)
        {
            if (_searched < _pieceEnd && TryFindLineInPiece())
            {
                return true;
            }

            if (_afterLine < _pieceEnd)
            {
                Carry();
            }

            SequencePosition position = _nextPiece;
            if (!_hasBuffer || !_buffer.TryGet(ref _nextPiece, out _piece))
            {
                _searched = _afterLine = _pieceEnd;
                return false;
            }

            _piecePosition = position;
            bool isArray = MemoryMarshal.TryGetArray(_piece, out ArraySegment<byte> segment) && segment.Array is not null;
            _array = isArray ? segment.Array : null;
            _pieceStart = isArray ? segment.Offset : 0;
            _pieceEnd = _pieceStart + _piece.Length;
            _searched = _afterLine = _pieceStart;
        }
    }

    private bool TryFindLineInPiece()
    {
        if (_carried == 0 && _array is not null)
        {
            FindLineFeeds(_array.AsSpan(0, _pieceEnd));
            if (_count == 0)
            {
                return false;
            }

            _lineArray = _array;
            return TryMoveInTable() ? true : throw TooLong();
        }

        int length = _piece.Span[(_searched - _pieceStart)..].IndexOf((byte)'\n');
        if (length < 0)
        {
            _searched = _pieceEnd;
            return false;
        }

        int end = _searched + length;
        _line = WithoutCarriageReturn(_buffer.Slice(NextLine, PositionOf(end)));
        ThrowIfTooLong(_line.Length);
        _carried = 0;
        _searched = _afterLine = end + 1;
        _linesBefore++;
        return true;
    }

    /// <summary>Fills the table, beginning where the piece is not searched yet.</summary>
    /// <param name="array">The piece's array up to the end of the piece.</param>
    private void FindLineFeeds(ReadOnlySpan<byte> array)
    {
        if (_lineFeeds.Length == 0)
        {
            _lineFeeds = new int[TableSize];
        }

        Span<int> lineFeeds = _lineFeeds;
        Vector512<byte> wanted = Vector512.Create((byte)'\n');
        int count = 0;
        int searched = _searched;
        while (searched < array.Length && count <= lineFeeds.Length - BlockSize)
        {
            ulong found = array.Length - searched >= BlockSize
                ? Vector512.Equals(Vector512.Create(array.Slice(searched, BlockSize)), wanted).ExtractMostSignificantBits()
                : FindInShortBlock(array[searched..]);

            // Two without asking whether there are so many: the processor cannot guess that, and what is written too much is written over.
            Span<int> room = lineFeeds.Slice(count, BlockSize);
            int inBlock = BitOperations.PopCount(found);
            room[0] = searched + BitOperations.TrailingZeroCount(found);
            found &= found - 1;
            room[1] = searched + BitOperations.TrailingZeroCount(found);
            for (int i = 2; i < inBlock; i++)
            {
                found &= found - 1;
                room[i] = searched + BitOperations.TrailingZeroCount(found);
            }

            count += inBlock;
            searched += BlockSize;
        }

        _searched = Math.Min(searched, array.Length);
        _count = count;
    }

    private static ulong FindInShortBlock(ReadOnlySpan<byte> block)
    {
        ulong found = 0;
        for (int i = 0; i < block.Length; i++)
        {
            found |= block[i] == '\n' ? 1UL << i : 0;
        }

        return found;
    }

    /// <summary>The piece ends within a line.</summary>
    private void Carry()
    {
        if (_carried == 0)
        {
            _carriedStart = PositionOf(_afterLine);
        }

        _carried += _pieceEnd - _afterLine;
        _afterLine = _pieceEnd;

        // One more may be the CR of its line end.
        ThrowIfTooLong(_carried - 1);
    }

    /// <summary>Reads until there is a line, or the end.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<bool> ReadLineAsync()
    {
        do
        {
            if (_isLastBuffer)
            {
                return TryEnd();
            }

            if (_hasBuffer)
            {
                _hasBuffer = false;
                _reader.AdvanceTo(_carried > 0 ? _carriedStart : _buffer.End, _buffer.End);
            }

            ReadResult result = await _reader.ReadAsync(_cancellationToken).ConfigureAwait(false);
            _buffer = result.Buffer;
            if (result.IsCanceled)
            {
                _reader.AdvanceTo(_buffer.Start);
                throw new OperationCanceledException("The reading of lines was canceled by CancelPendingRead.");
            }

            // The carried bytes come again, at the beginning.
            _hasBuffer = true;
            _isLastBuffer = result.IsCompleted;
            _carriedStart = _buffer.Start;
            _nextPiece = _buffer.GetPosition(_carried);
        }
        while (!TryFindLine());
        return true;
    }

    /// <summary>Everything is read and searched: what is left is a line without a line end, or nothing.</summary>
    private bool TryEnd()
    {
        if (_carried == 0)
        {
            _isEnded = true;
            _hasBuffer = false;

            // PipeReader.Create(ReadOnlySequence<byte>) takes no position of an empty buffer; a reader that is completed next needs none.
            if (_leaveOpen || !_buffer.IsEmpty)
            {
                _reader.AdvanceTo(_buffer.End);
            }

            return false;
        }

        ThrowIfTooLong(_carried);
        _line = _buffer.Slice(_carriedStart);
        _linesBefore++;
        _carried = 0;
        _piecePosition = _buffer.End;
        _pieceStart = _afterLine = _searched = _pieceEnd = 0;
        return true;
    }

    private static ReadOnlySequence<byte> WithoutCarriageReturn(ReadOnlySequence<byte> line)
        => !line.IsEmpty && line.Slice(line.Length - 1).FirstSpan[0] == '\r' ? line.Slice(0, line.Length - 1) : line;

    private SequencePosition PositionOf(int index) => _buffer.GetPosition(index - _pieceStart, _piecePosition);

    private void ThrowIfTooLong(long length)
    {
        if (length > _maxLength)
        {
            throw TooLong();
        }
    }

    private LineTooLongException TooLong() => new(_linesBefore + _next + 1, _maxLength);
}
