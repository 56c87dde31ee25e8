namespace FilePipelines.TwoCallers.Tests;

internal enum ReaderCall
{
    ReadAsync,
    ReadAtLeastAsync,
    TryRead,

    /// <summary>Consumes everything.</summary>
    AdvanceToEnd,

    /// <summary>Consumes some, and has examined everything.</summary>
    AdvanceToExamined,

    CopyToAsync,
    CancelPendingRead,
    CancelToken,
    Complete,
    CompleteAsync,
    Dispose,
    DisposeAsync,
}
