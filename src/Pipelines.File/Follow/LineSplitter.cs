namespace Pipelines.File.Follow;

/// <summary>Takes line after line off what was read, each in one piece of memory.</summary>
/// <param name="maxLength">The most bytes of a line; a longer one is taken in pieces.</param>
internal sealed class LineSplitter(int maxLength)
{
    // A line that crosses segments is copied here.
    private byte[] _joined = [];

    // That many bytes at the beginning of what is left hold no line feed.
    private long _searched;

    /// <summary>Takes the next line. <see langword="false"/>: what is left is the beginning of one.</summary>
    /// <param name="rest">What was read and not taken; the line is taken off it.</param>
    /// <param name="line">The line without its line end, valid until the next call.</param>
    /// <param name="hasLineEnd">Whether it has one: a piece of a long line has none.</param>
    internal bool TryTake(ref ReadOnlySequence<byte> rest, out ReadOnlyMemory<byte> line, out bool hasLineEnd)
    {
        long end = FindLineFeed(rest);
        hasLineEnd = false;
        line = default;

        // The byte behind the most may be the CR of the line end.
        bool isPiece = (end < 0 ? rest.Length : end) > maxLength + 1L;
        if (end < 0 && !isPiece)
        {
            _searched = rest.Length;
            return false;
        }

        if (!isPiece)
        {
            line = Join(rest.Slice(0, end));
            line = line is { IsEmpty: false, Span: [.., (byte)'\r'] } ? line[..^1] : line;
            isPiece = line.Length > maxLength;
            hasLineEnd = !isPiece;
        }

        if (isPiece)
        {
            line = Join(rest.Slice(0, maxLength));
        }

        rest = rest.Slice(isPiece ? maxLength : end + 1);
        _searched = end < 0 ? rest.Length : 0;
        return true;
    }

    /// <summary>All that is left, as one piece.</summary>
    internal ReadOnlyMemory<byte> Join(ReadOnlySequence<byte> bytes)
    {
        if (bytes.IsSingleSegment)
        {
            return bytes.First;
        }

        int length = (int)bytes.Length;
        if (_joined.Length < length)
        {
            _joined = new byte[Math.Max(length, _joined.Length * 2)];
        }

        bytes.CopyTo(_joined);
        return _joined.AsMemory(0, length);
    }

    private long FindLineFeed(in ReadOnlySequence<byte> rest)
        => rest.Slice(_searched).PositionOf((byte)'\n') is { } position ? rest.Slice(0, position).Length : -1;
}
