using System.Globalization;

namespace Pipelines.File;

/// <summary>
/// A journal is damaged in a way that no crash explains: a record in the middle is not as it was written, a segment is missing, or a file
/// is not a segment of this journal. Nothing was changed. <see cref="Journal.RepairAsync"/> cuts the journal before the damage.
/// </summary>
/// <remarks>The content of the files is the cause, so this is not an <see cref="IOException"/>, and trying again does not help.</remarks>
public sealed class InvalidJournalException : FormatException
{
    /// <summary>Creates an exception without a place.</summary>
    public InvalidJournalException()
        : base("The journal is damaged.")
    {
    }

    /// <summary>Creates an exception with a message.</summary>
    /// <param name="message">The error message.</param>
    public InvalidJournalException(string? message)
        : base(message)
    {
    }

    /// <summary>Creates an exception with a message and a cause.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="innerException">The cause.</param>
    public InvalidJournalException(string? message, Exception? innerException)
        : base(message, innerException)
    {
    }

    internal InvalidJournalException(string what, string path, long offset, long sequence)
        : base(string.Create(CultureInfo.InvariantCulture, $"{what} Byte {offset}, record {sequence}: '{path}'"))
    {
        Path = path;
        Offset = offset;
        Sequence = sequence;
    }

    /// <summary>The segment file that is damaged; of a missing segment, the file that should come after it.</summary>
    public string? Path { get; }

    /// <summary>The file offset of the damage, in bytes: where the record or the segment's header begins.</summary>
    public long Offset { get; }

    /// <summary>The sequence number of the first record that cannot be read.</summary>
    public long Sequence { get; }
}
