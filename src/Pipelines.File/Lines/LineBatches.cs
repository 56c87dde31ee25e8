using Pipelines.File.Records;

namespace Pipelines.File.Lines;

/// <summary>The batches of the lines of a pipe. Every line of a batch ends with a line feed.</summary>
internal sealed class LineBatches(PipeReader reader, int maxLength, bool leaveOpen, CancellationToken cancellationToken)
    : PipeBatches<LineBatch>(reader, maxLength, leaveOpen, cancellationToken)
{
    /// <summary>The longest batch, bytes, unless one line is longer: so its bytes and their index stay in the processor's cache.</summary>
    private const int MaxBatch = 64 * 1024;

    private const byte LineFeed = (byte)'\n';

    // What LineIndex has written of the batch; null as long as nobody has asked for them or for their number.
    private int[] _ends = [];
    private int? _indexed;
    private int? _count;
    private long _linesBefore;

    public override LineBatch Current => Bytes.IsEmpty ? default : new(this, Number);

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

    /// <summary>The current batch, with memory of its own.</summary>
    internal LineBatch Copy()
    {
        LineBatches copy = new(Nothing, MaxLength, leaveOpen: false, CancellationToken.None);
        copy.HoldCopyOf(this);

        // At once: two threads that use the copy would make the index twice, in one array.
        _ = copy.Ends;
        copy._count = copy._indexed;
        return copy.Current;
    }

    public override ValueTask DisposeAsync()
    {
        LineIndex.Release(ref _ends);
        return base.DisposeAsync();
    }

    protected override int Measure(ReadOnlySpan<byte> bytes, int known, bool isEnd)
    {
        // The longest line that is allowed, with CR LF. So at most the first line of these bytes is too long.
        int end = (int)Math.Min(bytes.Length, MaxLength + 2L);
        int most = (int)Math.Min(end, known + (long)MaxBatch);
        int length = bytes[known..most].LastIndexOf(LineFeed) is int last and >= 0 ? known + last + 1
            : bytes[most..end].IndexOf(LineFeed) is int first and >= 0 ? most + first + 1 : 0;

        // If the line is not whole, the first byte over the maximum may be the CR of its line end.
        if (length > 0 ? IsTooLong(bytes[..length]) : end > MaxLength + (isEnd ? 0L : 1L))
        {
            throw Fail(new LineTooLongException(_linesBefore + 1, MaxLength));
        }

        if (length == 0 && isEnd)
        {
            // CR LF and not LF, because a CR at the end of the pipe is a part of the line.
            Joined.Write("\r\n"u8);
            length = Joined.WrittenCount;
        }

        return length;
    }

    // To the end of the line, or to where it is too long.
    protected override long MeasureJoin(int known, ReadOnlySequence<byte> next)
    {
        long length = next.PositionOf(LineFeed) is { } end ? next.Slice(next.Start, end).Length + 1 : next.Length;
        return Math.Min(length, MaxLength + 2L - known);
    }

    protected override int EndBatch()
    {
        _linesBefore += Count;
        _count = _indexed = null;
        return Length;
    }

    /// <summary>Whether these bytes are one line, which is too long.</summary>
    private bool IsTooLong(ReadOnlySpan<byte> lines)
        => LineIndex.Line(lines, 0, lines.Length - 1).Length > MaxLength && lines.IndexOf(LineFeed) == lines.Length - 1;
}
