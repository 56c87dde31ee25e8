namespace Pipelines.File.Waiting;

/// <summary>What a call waits for. Each kind has a queue of its own, so that one device that stalls holds up its own kind only.</summary>
internal enum WaitKind
{
    /// <summary>Bytes from the device, which are most likely on their way already, and copies from file to file: few threads that take several.</summary>
    Read,

    /// <summary>
    /// A read of bytes that most likely are in memory, which is tried without waiting: the application's pool helps, as it is copying memory. What has to wait goes on as <see cref="Read"/>.
    /// </summary>
    TryRead,

    /// <summary>Room for bytes: the application's pool helps, as most of it is copying memory.</summary>
    Write,

    /// <summary>The device: as many threads as calls, since many syncs that wait together are served together.</summary>
    Sync,

    /// <summary>A file that is opened: as many threads as calls.</summary>
    Open,
}
