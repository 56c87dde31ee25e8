namespace Pipelines.File.Threading;

/// <summary>
/// What a call waits for. Each kind has a reserved share of the threads, so that a device or server that stalls holds up no other kind of
/// call.
/// </summary>
internal enum WaitKind
{
    /// <summary>Bytes of a file.</summary>
    Read,

    /// <summary>The page cache, which mostly takes a write at once, or whoever else takes it.</summary>
    Write,

    /// <summary>The device: syncs, and the steps before and after them.</summary>
    Sync,

    /// <summary>The opening of a file, or the closing of one that only readers had.</summary>
    Open,

    /// <summary>A look at what the name of a followed file means now.</summary>
    Look,
}
