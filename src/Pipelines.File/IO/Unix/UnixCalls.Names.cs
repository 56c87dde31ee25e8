namespace Pipelines.File.IO;

/// <summary>
/// Calls that concern a file's name.
/// </summary>
internal unsafe partial class UnixCalls
{
    /// <summary>PATH_MAX, bytes.</summary>
    private const int MaxPath = 4096;

    /// <summary>Whether linkat(2) was refused once, so that later files have a name from the start.</summary>
    internal bool RefusesLinks { get; set; }

    /// <summary>
    /// openat(2) with O_TMPFILE: creates a file without a name in the folder of <paramref name="name"/>, and returns its descriptor. Linux
    /// only.
    /// </summary>
    internal virtual long MakeNameless(in UnixName name, int flags, uint mode)
        => Answer(LibcCalls.OpenAt(name.Descriptor, name.FolderBytes, Libc.O_TMPFILE | Libc.O_RDWR | Libc.O_CLOEXEC | flags, mode));

    /// <summary>openat(2) with O_CREAT and O_EXCL: creates a new file, and returns its descriptor. Linux only.</summary>
    internal virtual long MakeNew(in UnixName name, int flags, uint mode)
        => Answer(LibcCalls.OpenAt(name.Descriptor, name.Bytes, Libc.O_CREAT | Libc.O_EXCL | Libc.O_RDWR | Libc.O_CLOEXEC | flags, mode));

    /// <summary>
    /// open(2) with O_CREAT and O_NOFOLLOW: opens a file, or makes one, and returns its descriptor. ELOOP if it is a link. Linux only.
    /// </summary>
    internal virtual long OpenOrMake(string path)
        => Answer(LibcCalls.Open(path, Libc.O_CREAT | Libc.O_NOFOLLOW | Libc.O_RDWR | Libc.O_CLOEXEC, 0x1B6));

    /// <summary>flock(2) with LOCK_SH or LOCK_EX, and LOCK_NB, made again after EINTR.</summary>
    internal long TryLock(SafeFileHandle file, bool isShared)
        => Repeat(file, static (calls, file, operation) => calls.Lock(file, (int)operation),
            (isShared ? Libc.LOCK_SH : Libc.LOCK_EX) | Libc.LOCK_NB);

    /// <summary>flock(2).</summary>
    internal virtual long Lock(SafeFileHandle file, int operation) => Answer(LibcCalls.FLock((int)file.DangerousGetHandle(), operation));

    /// <summary>linkat(2): gives an open file of the library that has no name its first one. Fails if the name exists.</summary>
    /// <exception cref="ObjectDisposedException">The handle is closed.</exception>
    internal virtual long LinkNameless(SafeFileHandle file, in UnixName name)
    {
        UnixName to = name;
        return Repeat(file, (_, file, _) =>
        {
            int descriptor = (int)file.DangerousGetHandle();

            // AT_EMPTY_PATH would need no /proc, but a capability (before Linux 6.10).
            long answer = Answer(LibcCalls.LinkAt(Libc.AT_FDCWD, UnixName.Of($"/proc/self/fd/{descriptor}").Bytes, to.Descriptor, to.Bytes,
                Libc.AT_SYMLINK_FOLLOW));
            return answer != -Libc.ENOENT ? answer
                : Answer(LibcCalls.LinkAt(descriptor, [0], to.Descriptor, to.Bytes, Libc.AT_EMPTY_PATH));
        });
    }

    /// <summary>linkat(2): gives the file a second name. Fails if the name exists.</summary>
    internal virtual long Link(in UnixName from, in UnixName to)
        => Answer(LibcCalls.LinkAt(from.Descriptor, from.Bytes, to.Descriptor, to.Bytes, 0));

    /// <summary>renameat(2): replaces the file of the new name.</summary>
    internal virtual long Rename(in UnixName from, in UnixName to)
        => Answer(LibcCalls.RenameAt(from.Descriptor, from.Bytes, to.Descriptor, to.Bytes));

    /// <summary>renameat2(2) with RENAME_NOREPLACE.</summary>
    internal virtual long RenameNoReplace(in UnixName from, in UnixName to)
    {
        try
        {
            return OperatingSystem.IsLinux()
                ? Answer(LibcCalls.RenameAt2(from.Descriptor, from.Bytes, to.Descriptor, to.Bytes, Libc.RENAME_NOREPLACE))
                : -Libc.ENOSYS;
        }
        catch (EntryPointNotFoundException)
        {
            return -Libc.ENOSYS;
        }
    }

    /// <summary>faccessat(2): whether the process may write to the file.</summary>
    internal virtual long AskAccess(in UnixName name)
        => Answer(LibcCalls.FAccessAt(name.Descriptor, name.Bytes, Libc.W_OK, Libc.AT_EACCESS));

    /// <summary>openat(2) for writing, without changing the file: returns a descriptor.</summary>
    internal virtual long OpenToAppend(in UnixName name, int flags = Libc.O_CLOEXEC)
        => Answer(LibcCalls.OpenAt(name.Descriptor, name.Bytes, Libc.O_WRONLY | Libc.O_APPEND | Libc.O_NONBLOCK | flags));

    /// <summary>fchmod(2).</summary>
    internal virtual long ChangeMode(SafeFileHandle file, uint mode) => Answer(LibcCalls.FChMod(file, mode));

    /// <summary>unlinkat(2).</summary>
    internal virtual long Unlink(in UnixName name) => Answer(LibcCalls.UnlinkAt(name.Descriptor, name.Bytes, 0));

    /// <summary>
    /// openat(2) of a folder, and of nothing else: returns a descriptor for <see cref="SyncFolder"/>, unless the flags say O_PATH.
    /// </summary>
    internal virtual long OpenFolderAt(int folder, byte[] path, int flags)
        => Answer(LibcCalls.OpenAt(folder, path, flags | Libc.O_DIRECTORY
            | (OperatingSystem.IsMacOS() ? Libc.O_CLOEXECOfMacOS : Libc.O_CLOEXEC)));

    /// <summary>readlinkat(2): the text of a symbolic link; <see langword="null"/> if there is none, or it is longer than a path.</summary>
    internal virtual byte[]? ReadLink(in UnixName name)
    {
        byte* text = stackalloc byte[MaxPath];
        nint length = LibcCalls.ReadLinkAt(name.Descriptor, name.Bytes, text, MaxPath);
        return length is < 0 or MaxPath ? null : new ReadOnlySpan<byte>(text, (int)length).ToArray();
    }

    /// <summary>fsync(2): writes the names of a folder, or the permissions of a file, to the device.</summary>
    internal virtual long SyncFolder(SafeFileHandle folder) => Answer(LibcCalls.FSync(folder));

    /// <summary><see cref="SyncFolder"/>, made again after EINTR.</summary>
    internal long SyncAll(SafeFileHandle file) => Repeat(file, static (calls, file, _) => calls.SyncFolder(file));

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
