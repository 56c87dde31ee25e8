using Pipelines.File.IO;

namespace Pipelines.File;

/// <summary>
/// Puts on the device what the system has of a file or a folder. For code that changes files without a <see cref="FilePipeWriter"/>; a
/// writer with <see cref="FlushGuarantee.Durable"/> does both by itself.
/// </summary>
/// <example>
/// <code>
/// using Pipelines.File;
/// using Microsoft.Win32.SafeHandles;
///
/// using SafeFileHandle handle = File.OpenHandle("state", FileMode.Create, FileAccess.Write);
/// RandomAccess.Write(handle, [1, 2, 3], fileOffset: 0);
/// FileSync.Flush(handle);
/// FileSync.FlushFolder(".");      // the name, too
/// </code>
/// </example>
public static class FileSync
{
    /// <summary>
    /// Flushes a file: fdatasync(2), F_FULLFSYNC of macOS, FlushFileBuffers of Windows. Blocks until the device has confirmed it. Unlike
    /// <see cref="RandomAccess.FlushToDisk"/> it does not ignore that the file system has become read-only after an error (EROFS), which
    /// means that bytes are lost.
    /// </summary>
    /// <param name="handle">The file. On Windows it must be open for writing.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ObjectDisposedException">The handle is closed.</exception>
    /// <exception cref="IOException">Bytes may be lost: nothing that was written since the last success is certain.</exception>
    /// <exception cref="UnauthorizedAccessException">The handle is a folder, or the system refuses.</exception>
    public static void Flush(SafeFileHandle handle)
    {
        ArgumentNullException.ThrowIfNull(handle);
        ObjectDisposedException.ThrowIf(handle.IsClosed, handle);
        if (OperatingSystem.IsWindows())
        {
            RandomAccess.FlushToDisk(handle);
        }
        else if (UnixCalls.Default.SyncData(handle, FileProperties.Of(handle, path: null)) is < 0 and long answer)
        {
            throw FileErrors.FromErrno((int)-answer, FileProperties.PathOf(handle));
        }
    }

    /// <summary>
    /// Flushes the names in a folder (fsync(2)): after a file was made, renamed or removed there. On Windows errors are ignored, because an
    /// ordinary user may not flush a folder, and the file system's journal has the names.
    /// </summary>
    /// <param name="path">The folder.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty or <see langword="null"/>.</exception>
    /// <exception cref="IOException">The folder cannot be opened or synced: a power failure may lose its newest names.</exception>
    public static void FlushFolder(string path)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        FolderSync.Sync(UnixCalls.Default, path);
    }
}
