using System.Globalization;

namespace Pipelines.File;

/// <summary>What a pipe holds is no record: it is damaged, cut off, or longer than the caller of <c>ReadRecordsAsync</c> allows. <see cref="Offset"/> says where it begins.</summary>
/// <remarks>It is about what the file holds, not about reading it, and therefore no <see cref="IOException"/>: trying again does not help.</remarks>
public sealed class InvalidRecordException : FormatException
{
    /// <summary>Makes one that knows nothing.</summary>
    public InvalidRecordException()
        : base("A record is invalid.")
    {
    }

    /// <summary>Makes one with a message of the caller's.</summary>
    /// <param name="message">The error message.</param>
    public InvalidRecordException(string? message)
        : base(message)
    {
    }

    /// <summary>Makes one with a message and a cause of the caller's.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="innerException">The cause.</param>
    public InvalidRecordException(string? message, Exception? innerException)
        : base(message, innerException)
    {
    }

    /// <summary>Makes one for a record.</summary>
    /// <param name="offset">Where it begins, bytes from where the reading began.</param>
    /// <param name="isCutOff">Whether the end came within it.</param>
    public InvalidRecordException(long offset, bool isCutOff)
        : this(offset, isCutOff, isCutOff ? "is cut off by the end" : "is invalid")
    {
    }

    internal InvalidRecordException(long offset, bool isCutOff, string what)
        : base(string.Create(CultureInfo.InvariantCulture, $"The record at byte {offset}, counted from where the reading began, {what}."))
    {
        Offset = offset;
        IsCutOff = isCutOff;
    }

    /// <summary>Where the record begins, bytes from where the reading of records began; everything before it was returned.</summary>
    public long Offset { get; }

    /// <summary>Whether the end came within the record, as it does behind a writer that was killed; otherwise its bytes are wrong.</summary>
    public bool IsCutOff { get; }
}
