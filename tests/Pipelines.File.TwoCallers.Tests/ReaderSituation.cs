namespace FilePipelines.TwoCallers.Tests;

/// <summary>What has happened before the two calls.</summary>
public enum ReaderSituation
{
    NothingRead,

    /// <summary>The caller has a buffer.</summary>
    BufferOut,

    /// <summary>Some of what is buffered was examined and not consumed.</summary>
    Examined,

    /// <summary>Some of what is buffered was not examined.</summary>
    Unexamined,

    /// <summary>A read ahead is under way.</summary>
    ReadAhead,

    /// <summary>A read ahead is under way, and the caller has a buffer.</summary>
    ReadAheadAndBufferOut,

    /// <summary>A read that was canceled is still under way.</summary>
    LeftBehind,

    ReadPending,
    CopyPending,
}
