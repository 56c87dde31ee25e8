namespace Pipelines.File;

/// <summary>A part of a file: what <see cref="FilePipeReaderOptions.Offset"/> and <see cref="FilePipeReaderOptions.Length"/> take.</summary>
/// <param name="Offset">The file offset of the first byte, bytes.</param>
/// <param name="Length">How many bytes.</param>
public readonly record struct FileRange(long Offset, long Length)
{
    /// <summary>The file offset of the byte behind the range, bytes.</summary>
    public long EndOffset => Offset + Length;
}
