namespace Pipelines.File.IO;

/// <summary>
/// Calls that concern a file's name.
/// </summary>
internal unsafe partial class UnixCalls
{
    /// <summary>open(2) with O_TMPFILE: creates a file without a name, and returns its descriptor. Linux only.</summary>
    internal virtual long MakeNameless(string folder, int flags, uint mode)
        => Answer(LibcCalls.Open(folder, Libc.O_TMPFILE | Libc.O_RDWR | Libc.O_CLOEXEC | flags, mode));

    /// <summary>open(2) with O_CREAT and O_EXCL: creates a new file, and returns its descriptor. Linux only.</summary>
    internal virtual long MakeNew(string path, int flags, uint mode)
        => Answer(LibcCalls.Open(path, Libc.O_CREAT | Libc.O_EXCL | Libc.O_RDWR | Libc.O_CLOEXEC | flags, mode));

    /// <summary>
    /// open(2) with O_CREAT and O_NOFOLLOW: opens a file, or makes one, and returns its descriptor. ELOOP if it is a link. Linux only.
    /// </summary>
    internal virtual long OpenOrMake(string path)
        => Answer(LibcCalls.Open(path, Libc.O_CREAT | Libc.O_NOFOLLOW | Libc.O_RDWR | Libc.O_CLOEXEC, 0x1B6));

    /// <summary>flock(2) with LOCK_EX and LOCK_NB, made again after EINTR.</summary>
    internal long LockAlone(SafeFileHandle file) => Repeat(file, static (calls, file) => calls.Lock(file, Libc.LOCK_EX | Libc.LOCK_NB));

    /// <summary>flock(2).</summary>
    internal virtual long Lock(SafeFileHandle file, int operation) => Answer(LibcCalls.FLock((int)file.DangerousGetHandle(), operation));

    /// <summary>linkat(2): gives an open file of the library that has no name its first one. Fails if the name exists.</summary>
    /// <exception cref="ObjectDisposedException">The handle is closed.</exception>
    internal virtual long LinkNameless(SafeFileHandle file, string path)
        => Repeat(file, (_, file) =>
        {
            int descriptor = (int)file.DangerousGetHandle();

            // AT_EMPTY_PATH would need no /proc, but a capability (before Linux 6.10).
            long answer = Answer(LibcCalls.LinkAt(Libc.AT_FDCWD, $"/proc/self/fd/{descriptor}", Libc.AT_FDCWD, path,
                Libc.AT_SYMLINK_FOLLOW));
            return answer != -Libc.ENOENT ? answer
                : Answer(LibcCalls.LinkAt(descriptor, string.Empty, Libc.AT_FDCWD, path, Libc.AT_EMPTY_PATH));
        });

    /// <summary>link(2): gives the file a second name. Fails if the name exists.</summary>
    internal virtual long Link(string from, string to) => Answer(LibcCalls.Link(from, to));

    /// <summary>rename(2): replaces the file of the new name.</summary>
    internal virtual long Rename(string from, string to) => Answer(LibcCalls.Rename(from, to));

    /// <summary>renameat2(2) with RENAME_NOREPLACE.</summary>
    internal virtual long RenameNoReplace(string from, string to)
    {
        try
        {
            return OperatingSystem.IsLinux()
                ? Answer(LibcCalls.RenameAt2(Libc.AT_FDCWD, from, Libc.AT_FDCWD, to, Libc.RENAME_NOREPLACE))
                : -Libc.ENOSYS;
        }
        catch (EntryPointNotFoundException)
        {
            return -Libc.ENOSYS;
        }
    }

    /// <summary>unlink(2).</summary>
    internal virtual long Unlink(string path) => Answer(LibcCalls.Unlink(path));

    /// <summary>open(2) of a folder, and of nothing else: returns a descriptor for <see cref="SyncFolder"/>.</summary>
    internal virtual long OpenFolder(string path)
        => Answer(LibcCalls.Open(path, Libc.O_RDONLY | Libc.O_DIRECTORY
            | (OperatingSystem.IsMacOS() ? Libc.O_CLOEXECOfMacOS : Libc.O_CLOEXEC)));

    /// <summary>fsync(2): writes the names of a folder, or the permissions of a file, to the device.</summary>
    internal virtual long SyncFolder(SafeFileHandle folder) => Answer(LibcCalls.FSync(folder));

    /// <summary><see cref="SyncFolder"/>, made again after EINTR.</summary>
    internal long SyncAll(SafeFileHandle file) => Repeat(file, static (calls, file) => calls.SyncFolder(file));

    /// <summary>fallocate(2): reserves space on the device, and keeps the length of the file. Linux only.</summary>
    internal virtual long Allocate(SafeFileHandle file, long length)
        => Answer(LibcCalls.FAllocate(file, Libc.FALLOC_FL_KEEP_SIZE, 0, length));

    /// <summary>
    /// <see cref="Allocate"/>, made again after EINTR. As in the runtime only a lack of space, or a file system that fails, is an error;
    /// any other one means that the file system cannot reserve space.
    /// </summary>
    /// <exception cref="IOException">There is no room.</exception>
    internal void Reserve(SafeFileHandle file, long length, string path)
    {
        long answer = -Libc.EINTR;
        while (answer == -Libc.EINTR && length > 0 && OperatingSystem.IsLinux())
        {
            answer = Allocate(file, length);
        }

        if (answer is -Libc.ENOSPC or -Libc.EDQUOT or -Libc.EFBIG or -Libc.EIO or -Libc.EROFS)
        {
            throw FileErrors.FromErrno((int)-answer, path);
        }
    }
}
