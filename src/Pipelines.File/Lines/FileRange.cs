namespace Pipelines.File;

/// <summary>A part of a file, for <see cref="FilePipeReaderOptions.Offset"/> and <see cref="FilePipeReaderOptions.Length"/>.</summary>
/// <param name="Offset">The file offset of the first byte.</param>
/// <param name="Length">The number of bytes.</param>
public readonly record struct FileRange(long Offset, long Length)
{
    /// <summary>The file offset of the first byte after the range.</summary>
    public long EndOffset => Offset + Length;
}
