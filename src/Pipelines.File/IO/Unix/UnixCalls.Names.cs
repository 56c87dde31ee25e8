namespace Pipelines.File.IO;

/// <summary>The calls that concern a file's name. Together with the writes and syncs they are all that a power failure may undo.</summary>
internal unsafe partial class UnixCalls
{
    /// <summary>open(2) with O_TMPFILE: a descriptor of a file without a name. Linux only.</summary>
    internal virtual long MakeNameless(string folder, int flags, uint mode)
        => Answer(Libc.Open(folder, Libc.O_TMPFILE | Libc.O_WRONLY | Libc.O_CLOEXEC | flags, mode));

    /// <summary>open(2) with O_EXCL: a descriptor of a file that nobody had. Linux only.</summary>
    internal virtual long MakeNew(string path, int flags, uint mode)
        => Answer(Libc.Open(path, Libc.O_CREAT | Libc.O_EXCL | Libc.O_WRONLY | Libc.O_CLOEXEC | flags, mode));

    /// <summary>
    /// linkat(2): gives a file without a name, which is the library's own and open, its first one, unless there is a file of that name.
    /// </summary>
    internal virtual long LinkNameless(SafeFileHandle file, string path)
    {
        // AT_EMPTY_PATH would need no /proc, but a capability (before Linux 6.10).
        long answer = Answer(Libc.LinkAt(Libc.AT_FDCWD, $"/proc/self/fd/{file.DangerousGetHandle()}", Libc.AT_FDCWD, path,
            Libc.AT_SYMLINK_FOLLOW));
        return answer != -Libc.ENOENT ? answer
            : Answer(Libc.LinkAt((int)file.DangerousGetHandle(), string.Empty, Libc.AT_FDCWD, path, Libc.AT_EMPTY_PATH));
    }

    /// <summary>link(2): a second name, unless there is a file of that name.</summary>
    internal virtual long Link(string from, string to) => Answer(Libc.Link(from, to));

    /// <summary>rename(2): replaces what has the new name.</summary>
    internal virtual long Rename(string from, string to) => Answer(Libc.Rename(from, to));

    /// <summary>renameat2(2) with RENAME_NOREPLACE.</summary>
    internal virtual long RenameNoReplace(string from, string to)
    {
        try
        {
            return OperatingSystem.IsLinux()
                ? Answer(Libc.RenameAt2(Libc.AT_FDCWD, from, Libc.AT_FDCWD, to, Libc.RENAME_NOREPLACE))
                : -Libc.ENOSYS;
        }
        catch (EntryPointNotFoundException)
        {
            return -Libc.ENOSYS;
        }
    }

    /// <summary>unlink(2).</summary>
    internal virtual long Unlink(string path) => Answer(Libc.Unlink(path));

    /// <summary>open(2) of a folder: a descriptor for <see cref="SyncFolder"/>.</summary>
    internal virtual long OpenFolder(string path)
        => Answer(Libc.Open(path, Libc.O_RDONLY | (OperatingSystem.IsMacOS() ? Libc.O_CLOEXECOfMacOS : Libc.O_CLOEXEC)));

    /// <summary>fsync(2) of a folder: the names in it are on the device.</summary>
    internal virtual long SyncFolder(SafeFileHandle folder) => Answer(Libc.FSync(folder));

    /// <summary>fallocate(2): room on the device. Linux only.</summary>
    internal virtual long Allocate(SafeFileHandle file, long length) => Answer(Libc.FAllocate(file, 0, 0, length));
}
