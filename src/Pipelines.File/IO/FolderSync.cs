namespace Pipelines.File.IO;

/// <summary>
/// Syncs folders. The names in a folder are its content, and a file's own sync need not write them to the device (fsync(2)).
/// </summary>
internal static class FolderSync
{
    /// <summary>Opens a folder and syncs it.</summary>
    /// <exception cref="IOException">The sync failed.</exception>
    internal static void Sync(UnixCalls calls, string folder)
    {
        if (OperatingSystem.IsWindows())
        {
            // NTFS and others write their journal when the file itself is flushed, and an ordinary user may not flush a folder, so errors
            // are ignored.
            _ = WindowsCalls.Default.SyncFolder(folder);
            return;
        }

        using SafeFileHandle handle = Open(calls, folder);
        Sync(calls, handle, folder);
    }

    /// <summary>Opens a folder to sync it later, so that an error appears before anything is written.</summary>
    internal static SafeFileHandle Open(UnixCalls calls, string folder)
    {
        long descriptor = calls.OpenFolder(folder);
        return descriptor >= 0 ? new SafeFileHandle((nint)descriptor, ownsHandle: true) : throw Failed((int)-descriptor, folder);
    }

    /// <summary>Syncs an open folder.</summary>
    internal static void Sync(UnixCalls calls, SafeFileHandle handle, string folder)
    {
        // File systems that cannot sync a folder return EINVAL, and do not need it.
        if (calls.SyncAll(handle) is < 0 and not -Libc.EINVAL and long answer)
        {
            throw Failed((int)-answer, folder);
        }
    }

    private static IOException Failed(int errno, string folder)
    {
        Exception cause = FileErrors.FromErrno(errno, folder);
        string message = $"The folder could not be synced, so a power failure may lose the name of the file: {cause.Message}";
        return new IOException(message, cause) { HResult = errno };
    }
}
