namespace Pipelines.File.IO;

/// <summary>
/// Linux: opens a file to read it as the runtime does, with fewer system calls, and without the runtime's shared lock (flock(2)) where that
/// keeps every other process from writing: on SMB. Giving it up again would be too late for a write that fails meanwhile.
/// </summary>
[SupportedOSPlatform("linux")]
internal static class ReadOpening
{
    // The runtime's own switch: the variable, unless it says neither yes nor no.
    private static readonly bool s_takesLocks
        = Environment.GetEnvironmentVariable("DOTNET_SYSTEM_IO_DISABLEFILELOCKING")?.ToUpperInvariant() switch
        {
            "1" or "TRUE" => false,
            "0" or "FALSE" => true,
            _ => !AppContext.TryGetSwitch("System.IO.DisableFileLocking", out bool isOff) || !isOff,
        };

    /// <summary>Opens the file; <see langword="null"/> if the runtime has to: for what is rare, and to say what is wrong.</summary>
    /// <param name="file">The file.</param>
    /// <exception cref="UnauthorizedAccessException">It is a folder.</exception>
    internal static OpenedFile? TryOpen(in FileToOpen file)
    {
        int flags = Libc.O_RDONLY | ((file.Share & FileShare.Inheritable) == 0 ? Libc.O_CLOEXEC : 0)
            | ((file.Options & FileOptions.WriteThrough) != 0 ? Libc.O_SYNC : 0);
        if (file is not { Mode: FileMode.Open, Access: FileAccess.Read, PreallocationSize: 0 }
            || (file.Options & FileOptions.DeleteOnClose) != 0
            || LibcCalls.Open(file.Path, flags) is not (>= 0 and int descriptor))
        {
            return null;
        }

        OpenedFile opened = FileOpening.ChooseOrClose(file, new SafeFileHandle(descriptor, ownsHandle: true));
        long locked = s_takesLocks && TakesLock(file.Share, opened.Properties.FileSystem)
            ? UnixCalls.Default.TryLock(opened.Handle, isShared: file.Share != FileShare.None) : -Libc.ENOSYS;
        opened.IsLocked = locked == 0;
        if (locked == -Libc.EAGAIN)
        {
            // Somebody has a lock that excludes this one. Every other error means that the file system has no locks.
            opened.Release(closeHandle: true);
            return null;
        }

        if ((file.Options & (FileOptions.SequentialScan | FileOptions.RandomAccess)) is not 0 and FileOptions hint)
        {
            _ = LibcCalls.FAdvise(opened.Handle, 0, 0,
                (hint & FileOptions.RandomAccess) != 0 ? Libc.POSIX_FADV_RANDOM : Libc.POSIX_FADV_SEQUENTIAL);
        }

        return opened;
    }

    /// <summary>Whether to take the lock that the runtime takes.</summary>
    /// <param name="share">What others may do with the file.</param>
    /// <param name="fileSystem">f_type of statfs(2).</param>
    internal static bool TakesLock(FileShare share, long fileSystem)
        => share == FileShare.None || !LocalFileSystems.LocksKeepOthersOut(fileSystem);
}
