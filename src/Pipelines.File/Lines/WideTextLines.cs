using Pipelines.File.Records;

namespace Pipelines.File.Lines;

/// <summary>
/// The lines of a pipe as text, in an encoding whose line feed is not the byte 0x0A alone, such as UTF-16: its bytes end a line only where a character begins. Rare, and not made fast.
/// </summary>
internal struct WideTextLines(PipeReader reader, Encoding encoding, int maxLength) : IRecordTaker<string>
{
    private readonly byte[] _lineFeed = encoding.GetBytes("\n");
    private readonly byte[] _carriageReturn = encoding.GetBytes("\r");
    private byte[]? _mark;
    private long _lines;

    // So many bytes of what is left hold no line feed.
    private long _searched;

    /// <summary>Whether the encoding is read here.</summary>
    internal static bool IsFor(Encoding encoding) => !encoding.GetBytes("\n").AsSpan().SequenceEqual("\n"u8);

    public bool TryTake(ref ReadOnlySequence<byte> rest, bool isEnd, out string text)
    {
        text = string.Empty;
        _mark ??= reader is FilePipeReader { Position: > 0 } ? [] : ByteOrderMark.Of(encoding);
        bool isWhole = TryFindEnd(rest, out long end);
        if (!isWhole && !isEnd)
        {
            // What is behind the longest line may be a part of its line end.
            return rest.Length - _carriageReturn.Length <= maxLength ? false : throw new LineTooLongException(_lines + 1, maxLength);
        }

        ReadOnlySequence<byte> line = rest.Slice(0, end);
        long withoutReturn = end - _carriageReturn.Length;
        if (isWhole && withoutReturn >= 0 && line.Slice(withoutReturn).ToArray().AsSpan().SequenceEqual(_carriageReturn))
        {
            line = line.Slice(0, withoutReturn);
        }

        if (line.Length > maxLength)
        {
            throw new LineTooLongException(_lines + 1, maxLength);
        }

        bool isMarked = _lines == 0 && _mark.Length > 0 && line.Length >= _mark.Length && line.Slice(0, _mark.Length).ToArray().AsSpan().SequenceEqual(_mark);
        text = encoding.GetString(isMarked ? line.Slice(_mark.Length) : line);
        rest = rest.Slice(isWhole ? end + _lineFeed.Length : end);
        _lines++;
        _searched = 0;

        // A mark with nothing behind it is no line.
        return isWhole || !isMarked || text.Length > 0;
    }

    /// <summary>Where the first line feed is; the end of what is there if there is none.</summary>
    private bool TryFindEnd(ReadOnlySequence<byte> rest, out long end)
    {
        SequenceReader<byte> bytes = new(rest);
        bytes.Advance(_searched);
        while (bytes.TryReadTo(out ReadOnlySequence<byte> _, _lineFeed, advancePastDelimiter: false))
        {
            if (bytes.Consumed % _lineFeed.Length == 0)
            {
                end = bytes.Consumed;
                return true;
            }

            bytes.Advance(1);
        }

        _searched = rest.Length - (rest.Length % _lineFeed.Length);
        end = rest.Length;
        return false;
    }
}
