namespace Pipelines.File;

/// <summary>
/// What was read so far, or what a <see cref="JournalPosition"/> means, is not in the journal any more: a repair has cut it before, another
/// journal is in the folder, or its end is missing. The numbers from there on are those of other records. Only the reader knows what
/// that means for what it has done with them.
/// </summary>
public sealed class JournalChangedException : IOException
{
    /// <summary>Creates an exception without a cause.</summary>
    public JournalChangedException()
        : base("The journal has changed before the place that was read.")
    {
    }

    /// <summary>Creates an exception with a message.</summary>
    /// <param name="message">The error message.</param>
    public JournalChangedException(string? message)
        : base(message)
    {
    }

    /// <summary>Creates an exception with a message and a cause.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="innerException">The cause.</param>
    public JournalChangedException(string? message, Exception? innerException)
        : base(message, innerException)
    {
    }
}
