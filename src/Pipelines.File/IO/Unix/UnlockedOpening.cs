namespace Pipelines.File.IO;

/// <summary>
/// Linux: opens a file to read it without the shared lock (flock(2)) that .NET takes, on file systems where that keeps every other process
/// from writing: SMB. Giving it up again would be too late for a write that fails meanwhile.
/// </summary>
internal static class UnlockedOpening
{
    // Whether it is worth a call for each file to ask where it is: not for processes that have never seen such a file system.
    private static volatile bool s_isMounted = IsMounted(LocalFileSystems.ReadMounts());

    /// <summary>Opens the file; <see langword="null"/> if the runtime has to: elsewhere, and to say what is wrong.</summary>
    /// <param name="file">The file.</param>
    [SupportedOSPlatform("linux")]
    internal static SafeFileHandle? TryOpen(in FileToOpen file)
        => s_isMounted && file is { Mode: FileMode.Open, Access: FileAccess.Read } && file.Share != FileShare.None
            && (file.Options & FileOptions.DeleteOnClose) == 0 && LocalFileSystems.LocksKeepOthersOut(LibcCalls.FileSystemOf(file.Path))
            ? Open(file.Path) : null;

    /// <summary>Opens the file; <see langword="null"/> if that fails.</summary>
    [UnsupportedOSPlatform("windows")]
    internal static SafeFileHandle? Open(string path)
    {
        int descriptor = LibcCalls.Open(path, Libc.O_RDONLY | Libc.O_CLOEXEC);
        return descriptor < 0 ? null : new SafeFileHandle(descriptor, ownsHandle: true);
    }

    /// <summary>Gives up the lock of a file that the runtime has opened: the first one of a file system that was mounted later.</summary>
    [UnsupportedOSPlatform("windows")]
    internal static void GiveUpLock(SafeFileHandle handle, in FileProperties properties)
    {
        if (LocalFileSystems.LocksKeepOthersOut(properties.FileSystem))
        {
            s_isMounted = true;
            _ = LibcCalls.FLock((int)handle.DangerousGetHandle(), Libc.LOCK_UN);
        }
    }

    /// <summary>Whether one of the mounts is of SMB, by the lines of /proc/self/mountinfo (proc_pid_mountinfo(5)).</summary>
    internal static bool IsMounted(string mounts)
        => mounts.Contains(" - cifs ", StringComparison.Ordinal) || mounts.Contains(" - smb3 ", StringComparison.Ordinal);
}
