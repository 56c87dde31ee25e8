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
    /// <summary>How many bytes are joined at least.</summary>
    private const int LeastJoin = 256;

    public override RecordBatch<T> Current => new(this, Number);

    /// <summary>Takes the record with which the bytes begin.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    internal bool TryTake(ReadOnlySpan<byte> bytes, out int consumed, out T record)
        => parser(bytes, out consumed, out record) == OperationStatus.Done
            && (uint)(consumed - 1) < (uint)Math.Min(bytes.Length, MaxLength);

    /// <summary>All bytes if they begin with a record: the others are parsed later, and may be no whole ones.</summary>
    protected override int Measure(ReadOnlySpan<byte> bytes, int known, bool isEnd)
    {
        OperationStatus status = parser(bytes, out int length, out _);
        bool isWhole = status == OperationStatus.Done;
        if (isWhole && (length <= 0 || length > bytes.Length))
        {
            throw new InvalidOperationException($"The parser returned OperationStatus.Done and consumed {length} of {bytes.Length} bytes.");
        }

        // An incomplete record is at least as long as all bytes that are there.
        bool isIncomplete = status == OperationStatus.NeedMoreData;
        if ((isWhole || isIncomplete) && (isWhole ? length : bytes.Length) > MaxLength)
        {
            return Refuse(new(Offset, isCutOff: false, $"is longer than {MaxLength} bytes, the maximum that was passed as maxLength"));
        }

        return isWhole ? bytes.Length : isIncomplete && !isEnd ? 0 : Refuse(new(Offset, isIncomplete));
    }

    // Twice as many each time, so that the parser does not see a long record too often.
    protected override long MeasureJoin(int known, ReadOnlySequence<byte> next) => Math.Max(LeastJoin, known);

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
