namespace Pipelines.File.Records;

/// <summary>
/// The batches of the records of a pipe. A batch is known to begin with a whole record; the others are parsed when they are enumerated, so
/// that a record occupies no memory. The end of a batch is where the parser does not find a whole record.
/// </summary>
internal sealed class RecordBatches<T, TParser>(PipeReader reader, TParser parser, int maxLength, bool leaveOpen,
    Func<InvalidRecordException, long?>? continueAt, CancellationToken cancellationToken)
    : PipeBatches<RecordBatch<T, TParser>>(reader, maxLength, leaveOpen, cancellationToken)
    where T : allows ref struct
    where TParser : struct, IRecordParser<T>
{
    /// <summary>How many bytes are joined at least.</summary>
    private const int LeastJoin = 256;

    // The number of records, -1 until it was asked for: one word, because several threads may use a copy.
    private int _count = -1;

    public override RecordBatch<T, TParser> Current => Bytes.IsEmpty ? default : new(this, Number);

    /// <summary>The number of records in the current batch.</summary>
    internal int Count => _count is >= 0 and int known ? known : _count = CountFrom(0).Records;

    /// <summary>The current batch, with memory of its own.</summary>
    internal RecordBatch<T, TParser> Copy()
    {
        RecordBatches<T, TParser> copy = new(Nothing, parser, MaxLength, leaveOpen: false, continueAt: null, CancellationToken.None);
        copy.HoldCopyOf(this);
        copy._count = _count;
        return copy.Current;
    }

    /// <summary>Takes the record with which the bytes begin.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    internal bool TryTake(ReadOnlySpan<byte> bytes, out int consumed, out T record)
        => parser.Parse(bytes, out consumed, out record) == OperationStatus.Done
            && (uint)(consumed - 1) < (uint)Math.Min(bytes.Length, MaxLength);

    /// <summary>All bytes if they begin with a record: the others are parsed later, and may be no whole ones.</summary>
    protected override int Measure(ReadOnlySpan<byte> bytes, int known, bool isEnd)
    {
        OperationStatus status = parser.Parse(bytes, out int length, out _);
        bool isWhole = status == OperationStatus.Done;
        if (isWhole && (length <= 0 || length > bytes.Length))
        {
            throw new InvalidOperationException($"The parser returned OperationStatus.Done and consumed {length} of {bytes.Length} bytes.");
        }

        // An incomplete record is at least as long as all bytes that are there, and as the parser says.
        bool isIncomplete = status == OperationStatus.NeedMoreData;
        length = isIncomplete ? Math.Max(length, bytes.Length) : length;
        if ((isWhole || isIncomplete) && length > MaxLength)
        {
            return Refuse(new(Offset, isCutOff: false, $"is longer than {MaxLength} bytes, the maximum that was passed as maxLength"));
        }

        // Where the parser does not say how much it needs, twice as many each time, so that it does not see a long record too often. Who
        // waits for others' bytes gets what there is: they may be all that comes for a while.
        Wanted = !isIncomplete ? 0 : length > bytes.Length ? length : IsWholeFile ? (int)Math.Min(2L * length, MaxLength + 1L) : 0;
        return isWhole ? bytes.Length : isIncomplete && !isEnd ? 0 : Refuse(Invalid(isCutOff: isIncomplete));
    }

    protected override long MeasureJoin(int known, ReadOnlySequence<byte> next)
        => Math.Max(Math.Max(LeastJoin, known), (long)Wanted - known);

    protected override int EndBatch()
    {
        // With records that nobody has asked for.
        int used = CountFrom(Returned).End;
        _count = -1;
        return used > 0 ? used : throw new InvalidOperationException("The parser did not find a record again that it has found before.");
    }

    /// <summary>The number of records from here on, and where they end.</summary>
    private (int Records, int End) CountFrom(int used)
    {
        int records = 0;
        for (ReadOnlySpan<byte> bytes = Bytes.Span;
            used < bytes.Length && TryTake(bytes[used..], out int consumed, out _);
            used += consumed)
        {
            records++;
        }

        return (records, used);
    }

    // The file is not to blame where somebody has cut it within a record.
    private InvalidRecordException Invalid(bool isCutOff)
        => !IsPartOfFile ? new(Offset, isCutOff)
            : new(Offset, isCutOff, (isCutOff ? "is cut off by the end of the part that is read" : "is invalid") + ": a part of a file has "
                + "to begin and end where a record does, and not at a separator within one, for example in a quoted field");

    private int Refuse(InvalidRecordException error)
    {
        if (continueAt?.Invoke(error) is not { } offset)
        {
            throw Fail(error);
        }

        if (offset <= error.Offset)
        {
            throw new ArgumentOutOfRangeException(
                $"continueAt returned {offset}, which is not after the invalid record at byte {error.Offset}.", innerException: null);
        }

        SkipTo(offset);
        return -1;
    }
}
