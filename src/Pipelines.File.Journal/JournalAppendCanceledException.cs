namespace Pipelines.File;

/// <summary>An append was canceled. <see cref="MayAppear"/> says whether the journal may contain the record all the same.</summary>
public sealed class JournalAppendCanceledException : OperationCanceledException
{
    /// <summary>Creates an exception for a record that the journal has not taken.</summary>
    public JournalAppendCanceledException()
        : this("The append was canceled before the journal took the record.")
    {
    }

    /// <summary>Creates an exception with a message.</summary>
    /// <param name="message">The error message.</param>
    public JournalAppendCanceledException(string? message)
        : base(message)
    {
    }

    /// <summary>Creates an exception with a message and a cause.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="innerException">The cause.</param>
    public JournalAppendCanceledException(string? message, Exception? innerException)
        : base(message, innerException)
    {
    }

    internal JournalAppendCanceledException(bool mayAppear, CancellationToken token)
        : base(mayAppear ? "The wait for the append was canceled; the journal has taken the record and will write it."
            : "The append was canceled before the journal took the record.", token)
        => MayAppear = mayAppear;

    /// <summary>
    /// <see langword="false"/>: the journal does not contain the record and never will. <see langword="true"/>: the journal has taken the
    /// record and writes it, unless it fails before.
    /// </summary>
    public bool MayAppear { get; }
}
