using System.Globalization;

namespace Pipelines.File;

/// <summary>A line is longer than the caller of <c>ReadLinesAsync</c>, <c>ReadLineBatchesAsync</c> or <c>ReadTextLinesAsync</c> allows.</summary>
/// <remarks>It is about what the file holds, not about reading it, and therefore no <see cref="IOException"/>: trying again does not help.</remarks>
public sealed class LineTooLongException : FormatException
{
    /// <summary>Makes one that knows neither the line nor the limit.</summary>
    public LineTooLongException()
        : base("A line is too long.")
    {
    }

    /// <summary>Makes one with a message of the caller's.</summary>
    /// <param name="message">The error message.</param>
    public LineTooLongException(string? message)
        : base(message)
    {
    }

    /// <summary>Makes one with a message and a cause of the caller's.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="innerException">The cause.</param>
    public LineTooLongException(string? message, Exception? innerException)
        : base(message, innerException)
    {
    }

    /// <summary>Makes one for a line.</summary>
    /// <param name="lineNumber">Its number, from 1.</param>
    /// <param name="maxLength">The most bytes that a line may have, without its line end.</param>
    public LineTooLongException(long lineNumber, int maxLength)
        : base(string.Create(CultureInfo.InvariantCulture, $"Line {lineNumber} is longer than {maxLength} bytes, the most that the reading of lines was told to take (maxLength)."))
    {
        LineNumber = lineNumber;
        MaxLength = maxLength;
    }

    /// <summary>The number of the line, from 1, counted from where the reading of lines began; 0 if nobody knows.</summary>
    public long LineNumber { get; }

    /// <summary>The most bytes that a line may have, without its line end; 0 if nobody knows.</summary>
    public int MaxLength { get; }
}
