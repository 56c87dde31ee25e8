namespace Pipelines.File;

/// <summary>
/// A line is longer than the maxLength that was passed to <c>ReadLinesAsync</c>, <c>ReadLineBatchesAsync</c> or
/// <c>ReadLineSequencesAsync</c>.
/// </summary>
/// <remarks>
/// The content of the file is the cause, not the reading of it. So this is not an <see cref="IOException"/>, and trying again does not
/// help.
/// </remarks>
/// <param name="lineNumber">The number of the line, counted from 1.</param>
/// <param name="maxLength">The maximum length of a line without its line end, in bytes.</param>
public sealed class LineTooLongException(long lineNumber, int maxLength)
    : FormatException(string.Create(CultureInfo.InvariantCulture,
        $"Line {lineNumber} is longer than {maxLength} bytes, the maximum that was passed as maxLength."))
{
    /// <summary>The number of the line, counted from 1 where the reading of lines began.</summary>
    public long LineNumber => lineNumber;

    /// <summary>The maximum length of a line without its line end, in bytes.</summary>
    public int MaxLength => maxLength;
}
