namespace Pipelines.File;

/// <summary>
/// A line is longer than the maxLength that was passed to <c>ReadLinesAsync</c>, <c>ReadLineBatchesAsync</c> or <c>ReadTextLinesAsync</c>.
/// </summary>
/// <remarks>
/// The content of the file is the cause, not the reading of it. So this is not an <see cref="IOException"/>, and trying again does not
/// help.
/// </remarks>
public sealed class LineTooLongException : FormatException
{
    /// <summary>Creates an exception without a line number and a limit.</summary>
    public LineTooLongException()
        : base("A line is too long.")
    {
    }

    /// <summary>Creates an exception with a message.</summary>
    /// <param name="message">The error message.</param>
    public LineTooLongException(string? message)
        : base(message)
    {
    }

    /// <summary>Creates an exception with a message and a cause.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="innerException">The cause.</param>
    public LineTooLongException(string? message, Exception? innerException)
        : base(message, innerException)
    {
    }

    /// <summary>Creates an exception for a line.</summary>
    /// <param name="lineNumber">The number of the line, counted from 1.</param>
    /// <param name="maxLength">The maximum length of a line without its line end, in bytes.</param>
    public LineTooLongException(long lineNumber, int maxLength)
        : base(string.Create(CultureInfo.InvariantCulture,
            $"Line {lineNumber} is longer than {maxLength} bytes, the maximum that was passed as maxLength."))
    {
        LineNumber = lineNumber;
        MaxLength = maxLength;
    }

    /// <summary>The number of the line, counted from 1 where the reading of lines began; 0 if it is unknown.</summary>
    public long LineNumber { get; }

    /// <summary>The maximum length of a line without its line end, in bytes; 0 if it is unknown.</summary>
    public int MaxLength { get; }
}
