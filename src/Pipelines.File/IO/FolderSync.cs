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

        Sync(calls, UnixName.Of(folder).Bytes, folder);
    }

    /// <summary>Syncs the folder that has an open file now: by what the kernel tells of it, and if it does not, by the path.</summary>
    /// <exception cref="IOException">The sync failed.</exception>
    internal static void SyncOf(UnixCalls calls, SafeFileHandle file, string? givenPath)
    {
        // In bytes: the folder's real name need not be UTF-8.
        byte[]? real = OperatingSystem.IsLinux() ? calls.ReadLink(UnixName.Of($"/proc/self/fd/{file.DangerousGetHandle()}")) : null;
        int slash = real is [(byte)'/', ..] ? Array.LastIndexOf(real, (byte)'/') : -1;
        if (slash >= 0)
        {
            byte[] folder = real![..Math.Max(1, slash)];
            Sync(calls, [.. folder, 0], Encoding.UTF8.GetString(folder));
        }
        else if (givenPath is not null && Path.GetDirectoryName(Path.GetFullPath(givenPath)) is { } folder)
        {
            Sync(calls, folder);
        }
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

    private static void Sync(UnixCalls calls, byte[] path, string folder)
    {
        long descriptor = calls.OpenFolderAt(Libc.AT_FDCWD, path, Libc.O_RDONLY);
        using SafeFileHandle handle = descriptor >= 0 ? new SafeFileHandle((nint)descriptor, ownsHandle: true)
            : throw Failed((int)-descriptor, folder);
        Sync(calls, handle, folder);
    }

    private static IOException Failed(int errno, string folder)
    {
        Exception cause = FileErrors.FromErrno(errno, folder);
        string message = $"The folder could not be synced, so a power failure may lose the name of the file: {cause.Message}";
        return new IOException(message, cause) { HResult = errno };
    }
}
