namespace Pipelines.File;

/// <summary>When a batch of lines is full, and for how long its first line waits for more.</summary>
internal readonly record struct BatchLimits(int Lines, int Bytes, TimeSpan Delay);

/// <summary>
/// The bytes of one file that were read and not yet returned, in one piece, and the lines that were found in them. Used by one caller at a
/// time.
/// </summary>
internal sealed class LineBuffer(string path, int maxLineLength, BatchLimits limits, LogFollowerCounts counts)
{
    /// <summary>How many bytes are taken at once at most for a line that is longer than a batch.</summary>
    private const int LongStep = 64 * 1024;

    private static readonly byte[] s_mark = [0xEF, 0xBB, 0xBF];

    /// <summary>Fewer NULs at the beginning of a line are text: UTF-16 has one.</summary>
    private static readonly byte[] s_nuls = [0, 0];

    private readonly List<(int Start, int Length, int End, bool HasLineEnd)> _lines = [];

    // Rented, and a small one while it is empty. Those from _start on were not returned; up to 1,024 before it are kept for the hashes.
    private byte[] _bytes = ArrayPool<byte>.Shared.Rent(LogContent.MaxKnown);
    private int _start;

    // Counted from _start, as in _lines: the end of the lines; up to where there is no other line feed; the end of the bytes.
    private int _lineStart;
    private int _searched;
    private int _end;

    // Up to which file offset NULs were skipped: one behind them is one of them.
    private long _nulsEnd = -1;

    // The hash of the file's first bytes, if it has so many that they count.
    private uint _beginning;

    /// <summary>The file, and the offset of the first byte that was not returned.</summary>
    internal FileIdentity Identity { get; private set; }

    internal long Offset { get; private set; }

    /// <summary>The file offset after the last byte that was taken.</summary>
    internal long End => Offset + _end;

    internal bool HasLines => _lines.Count > 0;

    internal bool IsEmpty => _end == 0;

    /// <summary>Whether the lines are a whole batch, or the next one does not fit.</summary>
    internal bool IsFull { get; private set; }

    /// <summary>Whether lines may be missing before the first line.</summary>
    internal bool IsAfterGap { get; set; }

    /// <summary>How many bytes to take at most.</summary>
    internal int Room => Math.Max(LongStep, limits.Bytes - _end);

    /// <summary>The last bytes up to <see cref="End"/>.</summary>
    internal ReadOnlySpan<byte> Last => Before(_end);

    /// <summary>What a checkpoint at <see cref="End"/> knows of the file.</summary>
    internal ulong HashAtEnd => HashAt(_end);

    private ReadOnlySpan<byte> Bytes => _bytes.AsSpan(_start, _end);

    /// <summary>Goes to a file. The buffer is empty, unless the file is a copy that continues where the last one has ended.</summary>
    /// <param name="identity">The file.</param>
    /// <param name="offset">The offset of the first byte.</param>
    /// <param name="before">The bytes before it.</param>
    /// <param name="beginning">The hash of the first bytes of the file, if they are before the offset.</param>
    internal void Begin(FileIdentity identity, long offset, ReadOnlySpan<byte> before, uint beginning)
    {
        (Identity, _beginning, _nulsEnd) = (identity, beginning, -1);
        if (IsEmpty)
        {
            before.CopyTo(_bytes);
            (Offset, _start) = (offset, before.Length);
        }
    }

    /// <summary>Goes on behind NULs that were not taken, after others. The buffer is empty, and has had the file's beginning.</summary>
    internal void Skip(long end)
    {
        int nuls = (int)Math.Min(end - Offset, LogContent.MaxKnown);
        Move(nuls);
        _bytes.AsSpan(_start, nuls).Clear();
        (Offset, _start) = (end, _start + nuls);
    }

    /// <summary>Takes bytes, and finds the lines in them.</summary>
    internal void Append(ReadOnlySequence<byte> bytes)
    {
        int length = (int)bytes.Length;
        if (_bytes.Length - _start - _end < length)
        {
            Move(length);
        }

        bytes.CopyTo(_bytes.AsSpan(_start + _end));
        bool hasBeginning = End >= LogContent.MaxKnown;
        _end += length;
        if (!hasBeginning && End >= LogContent.MaxKnown && End <= _start + _end)
        {
            // All bytes of the file are there: not more than these are dropped.
            _beginning = LogContent.HashOfBeginning(_bytes.AsSpan(_start + _end - (int)End, (int)End));
        }

        FindLines();
    }

    /// <summary>
    /// Takes the rest as lines without a line end, because none will come, as many as fit into a batch. Returns whether there are any.
    /// </summary>
    internal bool TryTakeTorn()
    {
        while (!IsFull && _lineStart < _end)
        {
            int length = Math.Min(_end - _lineStart, maxLineLength);
            Add(length, _lineStart + length, hasLineEnd: false);
        }

        _searched = _end;
        return HasLines;
    }

    /// <summary>The lines, as many as fit into a batch. They are valid until <see cref="OnReturned"/>.</summary>
    /// <param name="lines">An array to use if it is long enough.</param>
    /// <param name="loan">By which they are lent.</param>
    /// <param name="gone">The logs that have no file any more.</param>
    internal FollowedBatch Take(ref FollowedLine[] lines, Loan loan, IReadOnlyList<string> gone)
    {
        if (lines.Length < _lines.Count)
        {
            lines = new FollowedLine[Math.Max(_lines.Count, 16)];
        }

        for (int i = 0; i < _lines.Count; i++)
        {
            (int start, int length, int end, bool hasLineEnd) = _lines[i];
            lines[i] = new FollowedLine(path, _bytes.AsMemory(_start + start, length), loan)
            {
                HasLineEnd = hasLineEnd,
                IsAfterGap = IsAfterGap && i == 0,
                Checkpoint = new(Identity, Offset + end) { ContentHash = HashAt(end) },
            };
        }

        return new FollowedBatch(path, lines, _lines.Count, loan) { GoneLogs = gone };
    }

    /// <summary>The caller does not use the batch any more.</summary>
    internal void OnReturned()
    {
        if (_lines.Count > 0)
        {
            Drop(_lines[^1].End);
            FindLines();
        }
    }

    /// <summary>Gives the memory back.</summary>
    internal void Return() => ArrayPool<byte>.Shared.Return(_bytes);

    /// <summary>Drops the first bytes, and the lines, which are in them.</summary>
    private void Drop(int count)
    {
        (Offset, _start, _end) = (Offset + count, _start + count, _end - count);
        (_lineStart, _searched) = (Math.Max(0, _lineStart - count), Math.Max(0, _searched - count));
        IsAfterGap &= _lines.Count == 0;
        _lines.Clear();
        IsFull = false;
        if (IsEmpty)
        {
            Move(0);
        }
    }

    /// <summary>Goes on in memory that has room for so many more bytes.</summary>
    private void Move(int room)
    {
        int kept = Math.Min(_start, LogContent.MaxKnown);
        byte[] moved = ArrayPool<byte>.Shared.Rent(Math.Max(LogContent.MaxKnown, kept + _end + room));
        _bytes.AsSpan(_start - kept, kept + _end).CopyTo(moved);
        Return();
        (_bytes, _start) = (moved, kept);
    }

    private ulong HashAt(int end) => LogContent.Hash(Before(end), _beginning);

    /// <summary>The bytes before an end, as many as are known.</summary>
    private ReadOnlySpan<byte> Before(int end)
    {
        int length = Math.Min(_start + end, LogContent.MaxKnown);
        return _bytes.AsSpan(_start + end - length, length);
    }

    private void FindLines()
    {
        while (!IsFull && _lineStart < _end)
        {
            if (Bytes[_lineStart..].StartsWith(s_nuls) || (Offset + _lineStart == _nulsEnd && Bytes[_lineStart] == 0))
            {
                // A hole: the writer does not append, and the file was truncated; or a crash has left it.
                int nuls = Bytes[_lineStart..].IndexOfAnyExcept((byte)0);
                nuls = nuls < 0 ? _end - _lineStart : nuls;
                counts.Skipped.Add(nuls);
                _lineStart += nuls;
                _nulsEnd = Offset + _lineStart;
                _searched = Math.Max(_searched, _lineStart);
                if (!HasLines)
                {
                    Drop(_lineStart);
                }

                continue;
            }

            int index = Bytes[_searched..].IndexOf((byte)'\n');
            int end = index >= 0 ? _searched + index + 1 : _end;
            int length = index < 0 ? end - _lineStart
                : end - _lineStart - (end - _lineStart > 1 && Bytes[end - 2] == '\r' ? 2 : 1);

            // The first byte over the maximum may be the CR of a line end whose LF has not come.
            bool isPiece = length > maxLineLength + (index >= 0 ? 0L : 1);
            if (index < 0 && !isPiece)
            {
                _searched = _end;
                IsFull = HasLines && _end > limits.Bytes;
                return;
            }

            (length, end) = isPiece ? (maxLineLength, _lineStart + maxLineLength) : (length, end);
            if (HasLines && end > limits.Bytes)
            {
                IsFull = true;
                return;
            }

            Add(length, end, !isPiece);
            _searched = end;
        }
    }

    private void Add(int length, int end, bool hasLineEnd)
    {
        // The byte order mark of a file is no text.
        int mark = Offset + _lineStart == 0 && Bytes[..length].StartsWith(s_mark) ? s_mark.Length : 0;
        _lines.Add((_lineStart + mark, length - mark, end, hasLineEnd));
        _lineStart = end;
        IsFull |= _lines.Count >= limits.Lines || end >= limits.Bytes;
    }
}
