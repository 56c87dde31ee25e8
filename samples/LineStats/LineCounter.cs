using System.Buffers;

namespace LineStats;

/// <summary>
/// Counts lines in bytes that come piece by piece: a line may span any number of pieces, ends with LF or CR LF, and the last one may end
/// with the file. Nothing is decoded and nothing is copied; IndexOf finds each line end with SIMD.
/// </summary>
public sealed class LineCounter
{
    private long _lineLength;
    private bool _endsWithCarriageReturn;

    public long Bytes { get; private set; }

    public long Lines { get; private set; }

    public long EmptyLines { get; private set; }

    /// <summary>Bytes of the longest line, without its line end.</summary>
    public long LongestLine { get; private set; }

    /// <summary>The number of the longest line, from 1; of several, the first.</summary>
    public long LongestLineNumber { get; private set; }

    public void Add(ReadOnlySequence<byte> buffer)
    {
        foreach (ReadOnlyMemory<byte> memory in buffer)
        {
            Add(memory.Span);
        }
    }

    public void Add(ReadOnlySpan<byte> span)
    {
        Bytes += span.Length;
        while (true)
        {
            int index = span.IndexOf((byte)'\n');
            if (index < 0)
            {
                break;
            }

            bool endsWithCarriageReturn = index > 0 ? span[index - 1] == '\r' : _endsWithCarriageReturn;
            EndLine(_lineLength + index - (endsWithCarriageReturn ? 1 : 0));
            _lineLength = 0;
            _endsWithCarriageReturn = false;
            span = span[(index + 1)..];
        }

        if (span.Length > 0)
        {
            _lineLength += span.Length;
            _endsWithCarriageReturn = span[^1] == '\r';
        }
    }

    /// <summary>The end of the file: what is left is a line without a line end.</summary>
    public void Complete()
    {
        if (_lineLength > 0)
        {
            EndLine(_lineLength);
            _lineLength = 0;
        }
    }

    private void EndLine(long length)
    {
        Lines++;
        if (length == 0)
        {
            EmptyLines++;
        }

        if (length > LongestLine)
        {
            LongestLine = length;
            LongestLineNumber = Lines;
        }
    }
}
