namespace FilePipelines.TwoCallers.Tests;

/// <summary>What a scripted back end answers to an operation.</summary>
internal enum Answer
{
    /// <summary>All that was asked for, or what is left of the file.</summary>
    Full,

    /// <summary>A few bytes.</summary>
    Short,

    /// <summary>No bytes: the end of the file; for a write an error.</summary>
    None,

    Error,

    /// <summary>Given up before anything moved.</summary>
    Canceled,

    /// <summary>Not on the caller's thread.</summary>
    HandOver,
}
