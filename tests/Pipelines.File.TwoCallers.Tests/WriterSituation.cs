namespace FilePipelines.TwoCallers.Tests;

/// <summary>What has happened before the two calls.</summary>
public enum WriterSituation
{
    NothingWritten,

    /// <summary>The caller has memory.</summary>
    MemoryOut,

    /// <summary>Bytes were advanced over and not flushed.</summary>
    Unflushed,

    FlushPending,

    /// <summary>A flush waits for the device, which is at work.</summary>
    SyncPending,

    /// <summary>A write is under way that nobody waits for.</summary>
    WriteBehind,

    /// <summary>
    /// Nothing is written. The writer is durable and has made its file, so that folder and file are to be synced, also where nothing comes.
    /// </summary>
    DurableAndNew,

    /// <summary>Bytes were advanced over and not flushed. The thread of a flush writes them itself.</summary>
    UnflushedAndFast,

    /// <summary>The thread of a call writes the caller's bytes itself, from where they are.</summary>
    NothingWrittenAndFast,
}
