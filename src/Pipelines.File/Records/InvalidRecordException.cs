namespace Pipelines.File;

/// <summary>
/// The bytes of a pipe are not a record: they are damaged, cut off, or longer than the maxLength that was passed to
/// <c>ReadRecordBatchesAsync</c>. <see cref="Offset"/> says where they begin.
/// </summary>
/// <remarks>
/// The content of the file is the cause, not the reading of it. So this is not an <see cref="IOException"/>, and trying again does not
/// help.
/// </remarks>
public sealed class InvalidRecordException : FormatException
{
    /// <summary>Creates an exception for a record.</summary>
    /// <param name="offset">The file offset of the record.</param>
    /// <param name="isCutOff">Whether the pipe ended within the record.</param>
    public InvalidRecordException(long offset, bool isCutOff)
        : this(offset, isCutOff, isCutOff ? "is cut off by the end" : "is invalid")
    {
    }

    internal InvalidRecordException(long offset, bool isCutOff, string what)
        : base(string.Create(CultureInfo.InvariantCulture, $"The record at byte {offset} {what}."))
    {
        Offset = offset;
        IsCutOff = isCutOff;
    }

    /// <summary>
    /// The file offset of the record. If the reader is not a <see cref="FilePipeReader"/>, it counts from where the reading of records
    /// began. All records before it were returned.
    /// </summary>
    public long Offset { get; }

    /// <summary>
    /// Whether the pipe ended within the record, for example because its writer was killed. Otherwise the bytes of the record are wrong.
    /// </summary>
    public bool IsCutOff { get; }
}
