using System.Diagnostics.CodeAnalysis;

namespace Pipelines.File;

/// <summary>A line and where it is in the file; of <see cref="LineBatch.WithOffsets"/>.</summary>
[SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types", Justification = "A ref struct cannot be compared as an object.")]
public readonly ref struct Line
{
    internal Line(ReadOnlySpan<byte> span, long offset, long endOffset)
    {
        Span = span;
        Offset = offset;
        EndOffset = endOffset;
    }

    /// <summary>The bytes of the line without its line end, valid until the next line.</summary>
    public ReadOnlySpan<byte> Span { get; }

    /// <summary>
    /// The file offset of the first byte of the line, bytes. It counts from where the reading of lines began if the reader is no <see cref="FilePipeReader"/>.
    /// </summary>
    public long Offset { get; }

    /// <summary>
    /// The offset of the byte behind the line end, counted as <see cref="Offset"/>: a checkpoint, as it is the <see cref="FilePipeReaderOptions.Offset"/> from which the next line is read.
    /// </summary>
    public long EndOffset { get; }
}
