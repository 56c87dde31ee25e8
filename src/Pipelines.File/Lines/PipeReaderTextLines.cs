namespace Pipelines.File.Lines;

/// <summary>Enumerates the lines of a pipe as text, in an encoding whose line feed is the byte 0x0A.</summary>
internal sealed class PipeReaderTextLines(LineBatches batches, Encoding encoding) : LineByLine<string>(batches)
{
    private readonly bool _isUtf8 = encoding is UTF8Encoding;
    private bool _isAscii;
    private string? _current;
    private int _currentEnd;

    public override string Current
    {
        get
        {
            if (_current is null || _currentEnd != End)
            {
                _current = Decode(Line);
                _currentEnd = End;
            }

            return _current;
        }
    }

    protected override int Begin(ReadOnlySpan<byte> batch, long offset)
    {
        _current = null;
        _isAscii = _isUtf8 && Ascii.IsValid(batch);
        ReadOnlySpan<byte> mark = offset == 0 ? ByteOrderMark.Of(encoding) : [];
        return batch.StartsWith(mark) ? mark.Length : 0;
    }

    private string Decode(ReadOnlySpan<byte> line)
        => _isAscii ? string.Create(line.Length, line, static (text, bytes) => Ascii.ToUtf16(bytes, text, out _))
            : encoding.GetString(line);
}
