namespace Pipelines.File;

/// <summary>The way a reader or writer asks the operating system for its bytes. One that this system lacks throws <see cref="PlatformNotSupportedException"/>.</summary>
public enum FilePipeBackend
{
    /// <summary>
    /// The best one that this system has: <see cref="ThreadPool"/> on 64-bit Linux, <see cref="Overlapped"/> on Windows for files and named pipes that are opened by path,
    /// <see cref="Portable"/> elsewhere: for handles, for devices by themselves (<c>CON</c>, <c>COM1</c>, <c>\\.\PhysicalDrive0</c>), and for files that child processes
    /// inherit (<see cref="FileShare.Inheritable"/>). The default.
    /// </summary>
    Auto,

    /// <summary>
    /// 64-bit Linux: a read is tried without waiting on the caller's thread (preadv2(2) with RWF_NOWAIT), and only what has to wait is handed over.
    /// </summary>
    ThreadPool,

    /// <summary>
    /// Windows: overlapped I/O on the runtime's completion port. A handle that the caller passes is bound to the port for ever, so that no FileStream can use it
    /// afterwards; one that is bound already or was not opened for overlapped I/O (<see cref="Microsoft.Win32.SafeHandles.SafeFileHandle.IsAsync"/>) throws <see cref="ArgumentException"/>.
    /// </summary>
    Overlapped,

    /// <summary>
    /// Every system: through <see cref="RandomAccess"/>, or through <see cref="FileStream"/> where the file cannot seek. Slower. On Windows a synchronous handle that cannot seek, such
    /// as redirected standard input, has a thread of its own.
    /// </summary>
    Portable,
}
