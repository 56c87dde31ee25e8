namespace Pipelines.File;

/// <summary>
/// How a reader or writer asks the operating system for its bytes. A back end that this system does not have throws
/// <see cref="PlatformNotSupportedException"/>.
/// </summary>
public enum FilePipeBackend
{
    /// <summary>
    /// The best back end of this system: <see cref="UnixThreads"/> on 64-bit Linux, <see cref="Overlapped"/> on Windows for files and
    /// named pipes that are opened by path, and otherwise <see cref="Portable"/>. This is the default.
    /// </summary>
    Auto,

    /// <summary>
    /// 64-bit Linux: a read is first tried on the caller's thread without waiting (preadv2(2) with RWF_NOWAIT). Only a call that has to
    /// wait is made by another thread, which belongs to a pool of the library's own: the threads of .NET's pool are not used for it.
    /// </summary>
    UnixThreads,

    /// <summary>
    /// Windows: overlapped I/O. A handle that you pass must have been opened for overlapped I/O
    /// (<see cref="Microsoft.Win32.SafeHandles.SafeFileHandle.IsAsync"/>); otherwise <see cref="ArgumentException"/> is thrown.
    /// </summary>
    Overlapped,

    /// <summary>
    /// Every system: <see cref="RandomAccess"/>, or <see cref="FileStream"/> if the file cannot seek. It is slower than the other back
    /// ends.
    /// </summary>
    Portable,
}
