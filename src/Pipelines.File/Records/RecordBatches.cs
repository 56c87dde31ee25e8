namespace Pipelines.File.Records;

/// <summary>
/// The batches of the records of a pipe. A batch is known to begin with a whole record; the others are parsed when they are enumerated, so
/// that a record occupies no memory. The end of a batch is where the parser does not find a whole record.
/// </summary>
internal sealed class RecordBatches<T>(PipeReader reader, RecordSpanParser<T> parser, int maxLength, bool leaveOpen,
    Func<InvalidRecordException, long?>? continueAt, CancellationToken cancellationToken)
    : PipeBatches<RecordBatch<T>>(reader, maxLength, leaveOpen, cancellationToken)
    where T : allows ref struct
{
    /// <summary>How many bytes of the next segment are joined at first.</summary>
    private const int FirstJoin = 256;

    // How many bytes are joined before the parser sees them again, unless there are no more.
    private int _wanted;

    public override RecordBatch<T> Current => new(this, Number);

    protected override int UsedLength => Returned;

    /// <summary>Whether the pipe ends after the bytes that the parser sees.</summary>
    internal bool IsAtEnd { get; private set; }

    /// <summary>Takes the record with which the bytes begin.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    internal bool TryTake(ReadOnlySpan<byte> bytes, out int consumed, out T record)
        => parser(bytes, out consumed, out record) == OperationStatus.Done
            && (uint)(consumed - 1) < (uint)Math.Min(bytes.Length, MaxLength);

    protected override int Measure(ReadOnlySpan<byte> segment) => Parse(segment, isEnd: false);

    protected override int MeasureJoin(ReadOnlySpan<byte> segment) => Math.Min(segment.Length, Math.Max(1, _wanted - Joined.WrittenCount));

    protected override int MeasureJoined(ReadOnlySpan<byte> joined, bool isEnd)
        => joined.Length < _wanted && HasMore ? 0 : Parse(joined, isEnd);

    protected override int EndBatch()
    {
        // Records that nobody has asked for.
        ReadOnlySpan<byte> bytes = Bytes.Span;
        int used = Returned;
        while (used < bytes.Length && TryTake(bytes[used..], out int consumed, out _))
        {
            used += consumed;
        }

        return used > 0 ? used : throw new InvalidOperationException("The parser did not find a record again that it has found before.");
    }

    /// <summary>All bytes if they begin with a record; 0 if more bytes may complete it; -1 after SkipTo.</summary>
    private int Parse(ReadOnlySpan<byte> bytes, bool isEnd)
    {
        IsAtEnd = isEnd;
        OperationStatus status = parser(bytes, out int length, out _);
        if (status == OperationStatus.Done && (length <= 0 || length > bytes.Length))
        {
            throw new InvalidOperationException($"The parser returned OperationStatus.Done and consumed {length} of {bytes.Length} bytes.");
        }

        // An incomplete record is at least as long as all bytes that are there.
        bool isWhole = status == OperationStatus.Done;
        bool isIncomplete = status == OperationStatus.NeedMoreData;
        if ((isWhole || isIncomplete) && (isWhole ? length : bytes.Length) > MaxLength)
        {
            return Refuse(new(Offset, isCutOff: false, $"is longer than {MaxLength} bytes, the maximum that was passed as maxLength"));
        }

        _wanted = Math.Max(FirstJoin, 2 * bytes.Length);
        return isWhole ? bytes.Length : isIncomplete && !isEnd ? 0 : Refuse(new(Offset, isIncomplete));
    }

    private int Refuse(InvalidRecordException error)
    {
        if (continueAt?.Invoke(error) is not { } offset)
        {
            throw Fail(error);
        }

        ArgumentOutOfRangeException.ThrowIfLessThanOrEqual(offset, error.Offset, nameof(continueAt));
        SkipTo(offset);
        return -1;
    }
}
