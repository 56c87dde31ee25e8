namespace Pipelines.File.Threading;

/// <summary>
/// What a call waits for. A share of the threads is kept for each, so that a device or server that stalls holds up no other kind of call.
/// </summary>
internal enum WaitKind
{
    /// <summary>Bytes of a file.</summary>
    Read,

    /// <summary>A write that nothing but the next write follows: mostly copied memory.</summary>
    Write,

    /// <summary>The device: syncs, and what precedes and follows them.</summary>
    Sync,

    /// <summary>A file that a caller opens.</summary>
    Open,

    /// <summary>What a followed file's name means now.</summary>
    Look,
}
