namespace Pipelines.File.IO;

/// <summary>Puts the names of a folder on the device: they are its content, and a file's own sync need not cover them (fsync(2)).</summary>
internal static class FolderSync
{
    /// <summary>Syncs the folder that a file is in.</summary>
    /// <param name="path">The file's; <see langword="null"/> where nobody knows it: there is nothing to sync then.</param>
    /// <exception cref="IOException">It failed.</exception>
    internal static void Perform(string? path)
    {
        if (!OperatingSystem.IsWindows())
        {
            Perform(UnixCalls.Default, path);
        }
        else if (Path.GetDirectoryName(path) is { } folder)
        {
            // NTFS and others write their journal with the file's own flush, and an ordinary user may not flush a folder: a refusal is no
            // failure.
            _ = WindowsCalls.Default.SyncFolder(folder);
        }
    }

    /// <inheritdoc cref="Perform(string?)"/>
    internal static void Perform(UnixCalls calls, string? path)
    {
        if (Path.GetDirectoryName(path) is { } folder)
        {
            using SafeFileHandle handle = Open(calls, folder);
            Perform(calls, handle, folder);
        }
    }

    /// <summary>Opens a folder to be synced later, so that what stands in the way is told before anything is written.</summary>
    internal static SafeFileHandle Open(UnixCalls calls, string folder)
    {
        long descriptor = calls.OpenFolder(folder);
        if (descriptor is -Libc.ENFILE or -Libc.EMFILE && SpareDescriptors.TryRelease())
        {
            descriptor = calls.OpenFolder(folder);
        }

        return descriptor >= 0 ? new SafeFileHandle((nint)descriptor, ownsHandle: true) : throw Failed((int)-descriptor, folder);
    }

    /// <summary>Syncs an open folder.</summary>
    internal static void Perform(UnixCalls calls, SafeFileHandle handle, string folder)
    {
        long answer;
        do
        {
            answer = calls.SyncFolder(handle);
        }
        while (answer == -Libc.EINTR);

        // File systems that cannot sync a folder say EINVAL, and need none.
        if (answer is < 0 and not -Libc.EINVAL)
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
