using Pipelines.File.Records;

namespace Pipelines.File.Lines;

/// <summary>
/// Takes the lines of a pipe as text, in an encoding whose line feed is not the byte 0x0A, such as UTF-16: the bytes of a line feed end a
/// line only at the boundary of a character. Rare, so not optimized.
/// </summary>
internal struct WideTextLines(PipeReader reader, Encoding encoding, int maxLength) : IRecordTaker<string>
{
    private readonly byte[] _lineFeed = encoding.GetBytes("\n");
    private readonly byte[] _carriageReturn = encoding.GetBytes("\r");
    private byte[]? _mark;
    private long _lines;

    // How many bytes at the beginning of the rest are known to hold no line feed.
    private long _searched;

    /// <summary>Whether the encoding needs this type: its line feed is not the byte 0x0A.</summary>
    internal static bool IsFor(Encoding encoding) => !encoding.GetBytes("\n").AsSpan().SequenceEqual("\n"u8);

    public bool TryTake(ref ReadOnlySequence<byte> rest, bool isEnd, out string text)
    {
        text = string.Empty;
        _mark ??= reader is FilePipeReader { Position: > 0 } ? [] : ByteOrderMark.Of(encoding);
        SequenceReader<byte> bytes = new(rest);
        bytes.Advance(_searched);
        bool isWhole;
        while ((isWhole = bytes.TryReadTo(out ReadOnlySequence<byte> _, _lineFeed)) && bytes.Consumed % _lineFeed.Length != 0)
        {
            // These bytes are the end of one character and the beginning of the next.
            bytes.Rewind(_lineFeed.Length - 1);
        }

        _searched = isWhole ? 0 : rest.Length - (rest.Length % _lineFeed.Length);
        ReadOnlySequence<byte> line = isWhole ? rest.Slice(0, bytes.Consumed - _lineFeed.Length) : rest;
        ReadOnlySequence<byte> last = line.Slice(Math.Max(0, line.Length - _carriageReturn.Length));
        if (isWhole && new SequenceReader<byte>(last).IsNext(_carriageReturn))
        {
            line = line.Slice(0, line.Length - _carriageReturn.Length);
        }

        // If the whole line end has not come, the last bytes may be a part of it.
        bool isOver = isWhole || isEnd;
        if (line.Length - (isOver ? 0 : _carriageReturn.Length) > maxLength)
        {
            throw new LineTooLongException(_lines + 1, maxLength);
        }

        if (!isOver)
        {
            return false;
        }

        bool isMarked = _lines == 0 && _mark.Length > 0 && new SequenceReader<byte>(line).IsNext(_mark);
        text = encoding.GetString(isMarked ? line.Slice(_mark.Length) : line);
        rest = rest.Slice(isWhole ? bytes.Position : rest.End);
        _lines++;

        // A byte-order mark and nothing else is no line.
        return isWhole || !isMarked || text.Length > 0;
    }
}
