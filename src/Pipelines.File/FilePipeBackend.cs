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

    /// <summary>
    /// Windows overlapped I/O on the runtime's completion port, for files that are opened by path. A handle of the caller's goes through <see cref="RandomAccess"/>
    /// unless this value asks for more: then it is bound to the port, for ever, so that no FileStream can use it afterwards; one that is bound already
    /// or was not opened for overlapped I/O (<see cref="Microsoft.Win32.SafeHandles.SafeFileHandle.IsAsync"/>) throws <see cref="ArgumentException"/>.
    /// </summary>
    Overlapped,

    /// <summary>Linux io_uring(7). Reserved: no version of this library has it yet, and asking for it throws <see cref="PlatformNotSupportedException"/>.</summary>
    IoUring,
}
