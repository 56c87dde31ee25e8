using Pipelines.File.Records;

namespace Pipelines.File.Lines;

/// <summary>The batches of the lines of a pipe. Every line of a batch ends with a line feed.</summary>
internal sealed class LineBatches(PipeReader reader, int maxLength, bool leaveOpen, CancellationToken cancellationToken)
    : PipeBatches<LineBatch>(reader, maxLength, leaveOpen, cancellationToken)
{
    /// <summary>The longest batch, bytes, unless one line is longer: so its bytes and their index stay in the processor's cache.</summary>
    internal const int MaxBatch = 64 * 1024;

    private const byte LineFeed = (byte)'\n';

    // What LineIndex has written of the batch; null as long as nobody has asked for them or for their number.
    private int[] _ends = [];
    private int? _indexed;
    private int? _count;
    private long _linesBefore;

    public override LineBatch Current => new(this, Number);

    /// <summary>An array that begins with -1 and the indexes of the line feeds in the current batch.</summary>
    internal int[] Ends
    {
        get
        {
            _indexed ??= LineIndex.Write(Bytes.Span, ref _ends);
            return _ends;
        }
    }

    /// <summary>The number of lines in the current batch. Counting takes less time than the index.</summary>
    internal int Count => _count ??= _indexed ?? Bytes.Span.Count(LineFeed);

    protected override int UsedLength => Returned == 0 ? 0 : Math.Min(Ends[Returned] + 1, Length);

    public override ValueTask DisposeAsync()
    {
        ValueTask disposed = base.DisposeAsync();
        LineIndex.Release(ref _ends);
        return disposed;
    }

    protected override int Measure(ReadOnlySpan<byte> segment)
    {
        int length = segment[..Math.Min(segment.Length, MaxBatch)].LastIndexOf(LineFeed) + 1;
        if (length == 0 && segment.Length > MaxBatch && segment[MaxBatch..].IndexOf(LineFeed) is int index and >= 0)
        {
            length = MaxBatch + index + 1;
        }

        return length - 1 <= MaxLength ? length : MeasureToLongLine(segment[..length]);
    }

    protected override int MeasureJoin(ReadOnlySpan<byte> segment)
        => segment.IndexOf(LineFeed) is int index and >= 0 ? index + 1 : segment.Length;

    protected override int MeasureJoined(ReadOnlySpan<byte> joined, bool isEnd)
    {
        int length = joined.Length;
        bool isWhole = joined[^1] == LineFeed;

        // If the line is not whole, the first byte over the maximum may be the CR of its line end.
        if ((isWhole ? LineIndex.Line(joined, 0, length - 1).Length : isEnd ? length : length - 1) > MaxLength)
        {
            throw TooLong(0);
        }

        if (isEnd)
        {
            // CR LF and not LF, because a CR at the end of the pipe is a part of the line.
            Joined.Write("\r\n"u8);
        }

        return isWhole || isEnd ? length : 0;
    }

    protected override int EndBatch()
    {
        _linesBefore += Count;
        _count = _indexed = null;
        return Length;
    }

    /// <summary>The length of the lines before the first one that is too long.</summary>
    private int MeasureToLongLine(ReadOnlySpan<byte> lines)
    {
        int count = LineIndex.Write(lines, ref _ends);
        for (int i = 0; i < count; i++)
        {
            if (LineIndex.Line(lines, _ends[i] + 1, _ends[i + 1]).Length > MaxLength)
            {
                return i > 0 ? _ends[i] + 1 : throw TooLong(i);
            }
        }

        return lines.Length;
    }

    private FormatException TooLong(int index) => Fail(new LineTooLongException(_linesBefore + index + 1, MaxLength));
}
