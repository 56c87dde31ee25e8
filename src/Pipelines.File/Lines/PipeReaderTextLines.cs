namespace Pipelines.File.Lines;

/// <summary>
/// Enumerates the lines of a pipe as text, in an encoding whose line feed is the byte 0x0A. A batch of short ASCII lines is decoded at
/// once, and its lines are copied out of the text: that takes less time than to begin to decode for each line.
/// </summary>
internal sealed class PipeReaderTextLines(LineBatches batches, Encoding encoding) : LineByLine<string>(batches)
{
    /// <summary>The mean length of short lines, bytes.</summary>
    private const int ShortLine = 256;

    private static ReadOnlySpan<byte> ByteOrderMark => "\uFEFF"u8;

    private readonly bool _isUtf8 = encoding is UTF8Encoding;

    // The text of the batch, from the pool, if it was decoded at once.
    private char[] _text = [];
    private bool _isDecoded;

    public override string Current
    {
        get
        {
            if (!_isDecoded)
            {
                return encoding.GetString(Line);
            }

            int length = End - Start;
            return new string(_text, Start, length > 0 && _text[End - 1] == '\r' ? length - 1 : length);
        }
    }

    public override ValueTask DisposeAsync()
    {
        ArrayPool<char>.Shared.Return(_text);
        (_text, _isDecoded) = ([], false);
        return base.DisposeAsync();
    }

    protected override int Begin(ReadOnlySpan<byte> batch, long offset, int lines)
    {
        _isDecoded = _isUtf8 && batch.Length < (long)ShortLine * lines;
        if (_isDecoded && _text.Length < batch.Length)
        {
            char[] longer = ArrayPool<char>.Shared.Rent(batch.Length);
            ArrayPool<char>.Shared.Return(_text);
            _text = longer;
        }

        _isDecoded = _isDecoded && Ascii.ToUtf16(batch, _text, out _) == OperationStatus.Done;
        return _isUtf8 && offset == 0 && batch.StartsWith(ByteOrderMark) ? ByteOrderMark.Length : 0;
    }
}
