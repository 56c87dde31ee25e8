namespace Pipelines.File;

/// <summary>A line with its file offsets, as <see cref="LineBatch.WithOffsets"/> returns it.</summary>
public readonly ref struct Line
{
    /// <summary>The bytes of the line without its line end, valid until the next line.</summary>
    public ReadOnlySpan<byte> Span { get; internal init; }

    /// <summary>
    /// The file offset of the first byte of the line. If the reader is not a <see cref="FilePipeReader"/>, the offset counts from where the
    /// reading of lines began.
    /// </summary>
    public long Offset { get; internal init; }

    /// <summary>
    /// The offset of the first byte after the line and its line end, counted as <see cref="Offset"/> is. As a checkpoint, it is the
    /// <see cref="FilePipeReaderOptions.Offset"/> from which the next line is read.
    /// </summary>
    public long EndOffset { get; internal init; }
}
