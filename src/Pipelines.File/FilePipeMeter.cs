namespace Pipelines.File;

/// <summary>The names of the library's meter and of its instruments, for listeners and views. docs/running.md explains them.</summary>
public static class FilePipeMeter
{
    /// <summary>The name of the meter.</summary>
    public const string Name = "Pipelines.File";

    /// <summary>Reads that finished on the caller's thread.</summary>
    public const string ReadsInline = "pipelines.file.reads.inline";

    /// <summary>Reads that had to wait, so another thread or the system finished them.</summary>
    public const string ReadsHandedOver = "pipelines.file.reads.handed_over";

    /// <summary>Bytes that were read.</summary>
    public const string BytesRead = "pipelines.file.bytes_read";

    /// <summary>Write calls.</summary>
    public const string Writes = "pipelines.file.writes";

    /// <summary>Bytes that were written.</summary>
    public const string BytesWritten = "pipelines.file.bytes_written";

    /// <summary>Flushes whose bytes were written together with those of another flush.</summary>
    public const string FlushesCoalesced = "pipelines.file.flushes.coalesced";

    /// <summary>Flushes that had to wait because of <see cref="FilePipeWriterOptions.PauseWriterThreshold"/>.</summary>
    public const string FlushesPaused = "pipelines.file.flushes.paused";

    /// <summary>Calls of fdatasync or FlushFileBuffers.</summary>
    public const string Syncs = "pipelines.file.syncs";

    /// <summary>Calls that a file or system does not support; tags <c>call</c> and <c>error</c>.</summary>
    public const string Fallbacks = "pipelines.file.fallbacks";

    /// <summary>The library's own threads that exist now.</summary>
    public const string WaitingThreads = "pipelines.file.waiting.threads";

    /// <summary>Calls that wait for such a thread now.</summary>
    public const string WaitingQueued = "pipelines.file.waiting.queued";

    /// <summary>Calls that such a thread performs now.</summary>
    public const string WaitingUnderWay = "pipelines.file.waiting.under_way";

    /// <summary>Calls that such a thread has performed; tag <c>kind</c>.</summary>
    public const string WaitingCalls = "pipelines.file.waiting.calls";

    /// <summary>A histogram, in seconds: how long such a call took, with the wait for the thread; tag <c>kind</c>.</summary>
    public const string WaitingDuration = "pipelines.file.waiting.duration";

    /// <summary>Memory that the pool keeps and nobody uses, in bytes.</summary>
    public const string PoolRetained = "pipelines.file.pool.retained";

    /// <summary>Memory that the pool had to allocate, in bytes.</summary>
    public const string PoolAllocated = "pipelines.file.pool.allocated";

    /// <summary>Memory that the pool has left to the garbage collector, in bytes.</summary>
    public const string PoolReleased = "pipelines.file.pool.released";

    /// <summary>Lines that followers of logs have returned.</summary>
    public const string FollowedLines = "pipelines.file.follow.lines";

    /// <summary>Files that followers have left, because the next one had taken over or they were gone.</summary>
    public const string FollowedRotations = "pipelines.file.follow.rotations";

    /// <summary>How often followers may have missed lines.</summary>
    public const string FollowedGaps = "pipelines.file.follow.gaps";

    /// <summary>Files that followers have open now.</summary>
    public const string FollowedFiles = "pipelines.file.follow.files";

    /// <summary>Bytes of followed logs that were written and not returned yet.</summary>
    public const string FollowedBytesBehind = "pipelines.file.follow.behind";

    /// <summary>The version of the meter: that of the library.</summary>
    public static string Version { get; } = typeof(FilePipeMeter).Assembly.GetName().Version!.ToString(3);
}
