namespace Pipelines.File;

/// <summary>A record with its file offsets, as <see cref="RecordBatch{T}.WithOffsets"/> returns it.</summary>
/// <typeparam name="T">The type of a record.</typeparam>
public readonly ref struct LocatedRecord<T>
    where T : allows ref struct
{
    /// <summary>The record.</summary>
    public T Record { get; internal init; }

    /// <summary>
    /// The file offset of the first byte of the record. If the reader is not a <see cref="FilePipeReader"/>, the offset counts from where
    /// the reading of records began.
    /// </summary>
    public long Offset { get; internal init; }

    /// <summary>
    /// The offset of the first byte after the record, counted as <see cref="Offset"/> is. As a checkpoint, it is the
    /// <see cref="FilePipeReaderOptions.Offset"/> from which the next record is read.
    /// </summary>
    public long EndOffset { get; internal init; }
}
