namespace Pipelines.File;

/// <summary>The way a reader or writer asks the operating system for its bytes.</summary>
public enum FilePipeBackend
{
    /// <summary>The best one that this system has: <see cref="Overlapped"/> on Windows, <see cref="ThreadPool"/> elsewhere. The default.</summary>
    Auto,

    /// <summary>
    /// Tries without waiting on the caller's thread (preadv2(2) with RWF_NOWAIT on Linux) and hands over to the thread pool only what has to wait.
    /// On Windows, and on Unix systems that are not 64-bit, it goes through <see cref="RandomAccess"/>.
    /// </summary>
    ThreadPool,

    /// <summary>Windows overlapped I/O on the runtime's completion port.</summary>
    Overlapped,

    /// <summary>Linux io_uring(7). Reserved: no version of this library has it yet, and asking for it throws <see cref="PlatformNotSupportedException"/>.</summary>
    IoUring,
}
