namespace Pipelines.File.IO;

/// <summary>System calls of Unix, for 64-bit processes only: off_t has 64 bits there in every libc.</summary>
[UnsupportedOSPlatform("windows")]
internal static unsafe partial class LibcCalls
{
    private const string Library = "libc";

    /// <summary>epoll_ctl(2).</summary>
    internal static int EpollControl(int epoll, int operation, int descriptor, uint events, ulong data)
    {
        byte* packed = stackalloc byte[16];
        *(uint*)packed = events;
        *(ulong*)(packed + Libc.EpollDataOffset) = data;
        return EpollControl(epoll, operation, descriptor, packed);
    }

    /// <summary>Whether each write to the file waits for the device (open(2): O_DSYNC, which O_SYNC contains).</summary>
    internal static bool IsSynchronous(SafeFileHandle file) => TryGetFlags(file, out int flags) && (flags & Libc.O_DSYNC) != 0;

    /// <summary>The type of the file's file system (f_type of statfs(2)); -1 if the system does not report it.</summary>
    internal static long FileSystemOf(SafeFileHandle file)
    {
        // struct statfs has 120 bytes; this is more.
        long* status = stackalloc long[64];
        return FStatFS(file, status) == 0 ? status[0] & uint.MaxValue : -1;
    }

    /// <summary>Whether the file's file system is mounted read-only (ST_RDONLY of f_flags); false if the system does not tell.</summary>
    internal static bool IsOnReadOnlyMount(SafeFileHandle file)
    {
        long* status = stackalloc long[64];
        return OperatingSystem.IsLinux() && FStatFS(file, status) == 0 && (status[Libc.StatFsFlags] & Libc.ST_RDONLY) != 0;
    }

    [LibraryImport(Library, EntryPoint = "epoll_create1", SetLastError = true)]
    internal static partial int EpollCreate(int flags);

    [LibraryImport(Library, EntryPoint = "epoll_wait", SetLastError = true)]
    internal static partial int EpollWait(int epoll, byte* events, int count, int timeoutMilliseconds);

    [LibraryImport(Library, EntryPoint = "tee", SetLastError = true)]
    internal static partial nint Tee(SafeFileHandle source, int destination, nuint length, uint flags);

    /// <summary>open(2). The mode, for O_CREAT, works on Linux only: elsewhere a variadic argument is passed differently.</summary>
    [LibraryImport(Library, EntryPoint = "open", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Open(string path, int flags, uint mode = 0);

    [LibraryImport(Library, EntryPoint = "fcntl", SetLastError = true)]
    internal static partial int FCntl(SafeFileHandle file, int command, int argument);

    /// <summary>fcntl(2), F_GETFL: gets the access mode and the status flags of an open file description.</summary>
    internal static bool TryGetFlags(SafeFileHandle file, out int flags) => (flags = FCntl(file, Libc.F_GETFL, 0)) >= 0;

    /// <summary>
    /// fcntl(2), F_SETFL: changes status flags of an open file description. Returns less than 0 if it fails. Linux only: elsewhere the
    /// variadic argument is passed differently.
    /// </summary>
    internal static int ChangeFlags(SafeFileHandle file, int set = 0, int cleared = 0)
        => TryGetFlags(file, out int flags) ? FCntl(file, Libc.F_SETFL, (flags & ~cleared) | set) : -1;

    [LibraryImport(Library, EntryPoint = "flock", SetLastError = true)]
    internal static partial int FLock(int descriptor, int operation);

    [LibraryImport(Library, EntryPoint = "preadv2", SetLastError = true)]
    internal static partial nint PReadV2(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags);

    [LibraryImport(Library, EntryPoint = "preadv", SetLastError = true)]
    internal static partial nint PReadV(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset);

    [LibraryImport(Library, EntryPoint = "readv", SetLastError = true)]
    internal static partial nint ReadV(SafeFileHandle file, Libc.IoVector* vectors, int count);

    [LibraryImport(Library, EntryPoint = "pwritev2", SetLastError = true)]
    internal static partial nint PWriteV2(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags);

    [LibraryImport(Library, EntryPoint = "pwritev", SetLastError = true)]
    internal static partial nint PWriteV(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset);

    [LibraryImport(Library, EntryPoint = "pwrite", SetLastError = true)]
    internal static partial nint PWrite(SafeFileHandle file, byte* bytes, nint count, long offset);

    [LibraryImport(Library, EntryPoint = "writev", SetLastError = true)]
    internal static partial nint WriteV(SafeFileHandle file, Libc.IoVector* vectors, int count);

    [LibraryImport(Library, EntryPoint = "fdatasync", SetLastError = true)]
    internal static partial int FDataSync(SafeFileHandle file);

    [LibraryImport(Library, EntryPoint = "lseek", SetLastError = true)]
    internal static partial long LSeek(SafeFileHandle file, long offset, SeekOrigin origin);

    // A C library that has no statx(2) is asked once. A race costs one more exception.
    private static bool s_hasNoStatX;

    /// <summary>statx(2). musl has it since 1.2.5, glibc since 2.28; before, it is refused with ENOSYS.</summary>
    internal static int StatX(int folder, byte* path, int flags, uint mask, Libc.FileStatus* status)
    {
        try
        {
            if (!s_hasNoStatX)
            {
                return StatXOfLibrary(folder, path, flags, mask, status);
            }
        }
        catch (EntryPointNotFoundException)
        {
            s_hasNoStatX = true;
        }

        Marshal.SetLastPInvokeError(Libc.ENOSYS);
        return -1;
    }

    [LibraryImport(Library, EntryPoint = "statx", SetLastError = true)]
    private static partial int StatXOfLibrary(int folder, byte* path, int flags, uint mask, Libc.FileStatus* status);

    /// <summary>fstatat(2), the older statx(2), whose structure depends on the architecture. glibc has it since 2.33.</summary>
    [LibraryImport(Library, EntryPoint = "fstatat", SetLastError = true)]
    private static partial int FStatAt(int folder, byte* path, byte* status, int flags);

    /// <summary>
    /// fstatat(2) in place of statx(2), which sandboxes refuse that know only older calls. It does not tell when the file was made. Returns
    /// -1 where the system's structure is unknown.
    /// </summary>
    internal static int FStatAt(int folder, byte* path, Libc.FileStatus* told, int flags)
    {
        bool isX64 = RuntimeInformation.ProcessArchitecture == Architecture.X64;
        if (!isX64 && RuntimeInformation.ProcessArchitecture != Architecture.Arm64)
        {
            return -1;
        }

        // struct stat of <asm/stat.h>; it has 144 bytes, and 128 on Arm64.
        byte* status = stackalloc byte[256];
        try
        {
            if (FStatAt(folder, path, status, flags) != 0)
            {
                return -1;
            }
        }
        catch (EntryPointNotFoundException)
        {
            return -1;
        }

        int mode = isX64 ? 24 : 16;
        ulong device = *(ulong*)status;
        *told = new Libc.FileStatus
        {
            Mask = Libc.STATX_BASIC_STATS,
            Links = isX64 ? (uint)*(ulong*)(status + 16) : *(uint*)(status + 20),
            Mode = (ushort)*(uint*)(status + mode),
            User = *(uint*)(status + mode + (isX64 ? 4 : 8)),
            Group = *(uint*)(status + mode + (isX64 ? 8 : 12)),
            Number = *(ulong*)(status + 8),
            Size = *(long*)(status + 48),
            WriteSeconds = *(long*)(status + 88),
            WriteNanoseconds = *(uint*)(status + 96),
            ChangeSeconds = *(long*)(status + 104),
            ChangeNanoseconds = *(uint*)(status + 112),
            DeviceMajor = (uint)((device >> 8) & 0xfff) | (uint)((device >> 32) & 0xfffff000),
            DeviceMinor = (uint)(device & 0xff) | (uint)((device >> 12) & 0xffffff00),
        };
        return 0;
    }

    [LibraryImport(Library, EntryPoint = "poll", SetLastError = true)]
    internal static partial int Poll(Libc.PollDescriptor* descriptors, nuint count, int timeoutMilliseconds);

    [LibraryImport(Library, EntryPoint = "pipe2", SetLastError = true)]
    internal static partial int Pipe2(int* descriptors, int flags);

    [LibraryImport(Library, EntryPoint = "close", SetLastError = true)]
    internal static partial int Close(int descriptor);

    [LibraryImport(Library, EntryPoint = "epoll_ctl", SetLastError = true)]
    private static partial int EpollControl(int epoll, int operation, int descriptor, byte* eventOfIt);

    /// <summary>fstatfs(2). The first member of struct statfs is the type of the file system.</summary>
    [LibraryImport(Library, EntryPoint = "fstatfs", SetLastError = true)]
    private static partial int FStatFS(SafeFileHandle file, long* status);

    [LibraryImport(Library, EntryPoint = "faccessat", SetLastError = true)]
    internal static partial int FAccessAt(int folder, byte[] path, int mode, int flags);

    [LibraryImport(Library, EntryPoint = "geteuid")]
    internal static partial uint GetEffectiveUser();

    [LibraryImport(Library, EntryPoint = "fchmod", SetLastError = true)]
    internal static partial int FChMod(SafeFileHandle file, uint mode);

    [LibraryImport(Library, EntryPoint = "fchown", SetLastError = true)]
    internal static partial int FChOwn(SafeFileHandle file, uint user, uint group);

    [LibraryImport(Library, EntryPoint = "getxattr", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial nint GetXAttr(byte[] path, string name, byte* value, nint length);

    [LibraryImport(Library, EntryPoint = "fsetxattr", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int FSetXAttr(SafeFileHandle file, string name, byte* value, nint length, int flags);

    [LibraryImport(Library, EntryPoint = "fremovexattr", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int FRemoveXAttr(SafeFileHandle file, string name);

    [LibraryImport(Library, EntryPoint = "fallocate", SetLastError = true)]
    internal static partial int FAllocate(SafeFileHandle file, int mode, long offset, long length);

    /// <summary>openat(2). The mode, for O_CREAT and O_TMPFILE, works on Linux only: see <see cref="Open"/>.</summary>
    [LibraryImport(Library, EntryPoint = "openat", SetLastError = true)]
    internal static partial int OpenAt(int folder, byte[] path, int flags, uint mode = 0);

    [LibraryImport(Library, EntryPoint = "readlinkat", SetLastError = true)]
    internal static partial nint ReadLinkAt(int folder, byte[] path, byte* text, nint length);

    [LibraryImport(Library, EntryPoint = "linkat", SetLastError = true)]
    internal static partial int LinkAt(int fromFolder, byte[] from, int toFolder, byte[] to, int flags);

    [LibraryImport(Library, EntryPoint = "renameat", SetLastError = true)]
    internal static partial int RenameAt(int fromFolder, byte[] from, int toFolder, byte[] to);

    [LibraryImport(Library, EntryPoint = "renameat2", SetLastError = true)]
    internal static partial int RenameAt2(int fromFolder, byte[] from, int toFolder, byte[] to, uint flags);

    [LibraryImport(Library, EntryPoint = "unlinkat", SetLastError = true)]
    internal static partial int UnlinkAt(int folder, byte[] path, int flags);

    [LibraryImport(Library, EntryPoint = "unlink", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Unlink(string path);

    [LibraryImport(Library, EntryPoint = "fsync", SetLastError = true)]
    internal static partial int FSync(SafeFileHandle file);

    /// <summary>posix_fadvise(2): returns an errno, and does not set errno.</summary>
    [LibraryImport(Library, EntryPoint = "posix_fadvise")]
    internal static partial int FAdvise(SafeFileHandle file, long offset, long length, int advice);

    [LibraryImport(Library, EntryPoint = "sync_file_range", SetLastError = true)]
    internal static partial int SyncFileRange(SafeFileHandle file, long offset, long length, uint flags);

    /// <summary>cachestat(2), which no C library declares yet. The range is an offset and a length.</summary>
    [LibraryImport(Library, EntryPoint = "syscall", SetLastError = true)]
    internal static partial nint CacheStat(nint number, SafeFileHandle file, long* range, long* pages, nuint flags);

    [LibraryImport(Library, EntryPoint = "inotify_init1", SetLastError = true)]
    internal static partial int InotifyInit(int flags);

    [LibraryImport(Library, EntryPoint = "inotify_add_watch", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int InotifyAddWatch(SafeFileHandle inotify, string path, uint mask);

    [LibraryImport(Library, EntryPoint = "inotify_rm_watch", SetLastError = true)]
    internal static partial int InotifyRemoveWatch(SafeFileHandle inotify, int watch);

    [LibraryImport(Library, EntryPoint = "read", SetLastError = true)]
    internal static partial nint Read(SafeFileHandle file, byte* buffer, nuint count);
}
