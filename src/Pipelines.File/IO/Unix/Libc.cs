namespace Pipelines.File.IO;

/// <summary>System calls of Unix, for 64-bit processes only: off_t has 64 bits there in every libc.</summary>
internal static unsafe partial class Libc
{
    private const string Library = "libc";

    // The numbers are those of Linux. Those that other systems use, too, are the same there.
    internal const int EPERM = 1;
    internal const int EINTR = 4;
    internal const int EIO = 5;
    internal const int ENXIO = 6;
    internal const int EBADF = 9;
    internal const int EAGAIN = 11;
    internal const int EACCES = 13;
    internal const int EISDIR = 21;
    internal const int EINVAL = 22;
    internal const int ENFILE = 23;
    internal const int EMFILE = 24;
    internal const int ENOTTY = 25;
    internal const int EFBIG = 27;
    internal const int ESPIPE = 29;
    internal const int EROFS = 30;
    internal const int ENOTSUPOfMacOS = 45;
    internal const int EPIPE = 32;
    internal const int ENOSYS = 38;
    internal const int EOPNOTSUPP = 95;
    internal const int EDQUOT = 122;

    /// <summary>preadv2(2), pwritev2(2): the call fails with EAGAIN instead of waiting.</summary>
    internal const int RWF_NOWAIT = 0x8;

    internal const short POLLIN = 0x1;
    internal const short POLLOUT = 0x4;

    internal const int EPOLL_CTL_ADD = 1;
    internal const int EPOLL_CTL_DEL = 2;
    internal const int EPOLL_CTL_MOD = 3;
    internal const uint EPOLLONESHOT = 1u << 30;
    internal const int EPOLL_CLOEXEC = 0x80000;
    internal const int EFD_CLOEXEC = 0x80000;
    internal const uint SPLICE_F_NONBLOCK = 2;

    internal const int AT_FDCWD = -100;
    internal const int AT_EMPTY_PATH = 0x1000;
    internal const uint STATX_TYPE = 0x1;
    internal const uint STATX_NLINK = 0x4;
    internal const uint STATX_MTIME = 0x40;
    internal const uint STATX_CTIME = 0x80;
    internal const uint STATX_INO = 0x100;
    internal const uint STATX_SIZE = 0x200;
    internal const uint STATX_BTIME = 0x800;
    internal const int S_IFMT = 0xF000;
    internal const int S_IFIFO = 0x1000;
    internal const int S_IFCHR = 0x2000;
    internal const int S_IFDIR = 0x4000;
    internal const int S_IFBLK = 0x6000;
    internal const int S_IFREG = 0x8000;

    internal const int O_RDONLY = 0;
    internal const int O_WRONLY = 1;
    internal const int O_RDWR = 2;
    internal const int O_ACCMODE = 3;
    internal const int FD_CLOEXEC = 1;
    internal const int O_CREAT = 0x40;
    internal const int O_APPEND = 0x400;

    /// <summary>The permissions of a new file, less the umask: read and write for everybody (0666), as the runtime asks for.</summary>
    internal const uint NewFileMode = 0b110_110_110;
    internal const int O_CLOEXEC = 0x80000;
    internal const int O_NONBLOCK = 0x800;
    internal const int F_GETFD = 1;
    internal const int F_GETFL = 3;
    internal const int F_DUPFD_CLOEXEC = 1030;

    /// <summary>macOS, fcntl(2): writes the file to the device, and empties the device's cache.</summary>
    internal const int F_FULLFSYNC = 51;
    internal const int F_SETFL = 4;
    internal const int LOCK_SH = 1;
    internal const int LOCK_EX = 2;
    internal const int LOCK_NB = 4;
    internal const int LOCK_UN = 8;

    /// <summary>The maximum number of vectors of one call on every system (IOV_MAX).</summary>
    internal const int IOV_MAX = 1024;

    /// <summary>The number of bytes that a pipe takes without blocking if poll(2) reports it as writable (pipe(7)).</summary>
    internal const int PIPE_BUF = 4096;

    // epoll_ctl(2): on x64 the kernel packs struct epoll_event, so that its layout is that of 32-bit processes.
    private static bool IsEpollEventPacked { get; } = RuntimeInformation.ProcessArchitecture == Architecture.X64;

    /// <summary>The size of struct epoll_event, bytes. It begins with the events.</summary>
    internal static int EpollEventSize => IsEpollEventPacked ? 12 : 16;

    /// <summary>The offset of the data in struct epoll_event, bytes.</summary>
    internal static int EpollDataOffset => IsEpollEventPacked ? 4 : 8;

    /// <summary>open(2). The number depends on the architecture.</summary>
    internal static int O_DIRECT => RuntimeInformation.ProcessArchitecture switch
    {
        Architecture.Arm64 or Architecture.Arm => 0x10000,
        Architecture.Ppc64le => 0x20000,
        _ => 0x4000,
    };

    [StructLayout(LayoutKind.Sequential)]
    internal struct IoVector
    {
        internal nint Base;
        internal nint Length;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct PollDescriptor
    {
        internal int Descriptor;
        internal short Events;
        internal short ReturnedEvents;
    }

    /// <summary>struct statx of statx(2), the same on every architecture; only the members that are used.</summary>
    [StructLayout(LayoutKind.Explicit, Size = 256)]
    internal struct FileStatus
    {
        [FieldOffset(0)] internal uint Mask;
        [FieldOffset(16)] internal uint Links;
        [FieldOffset(20)] internal uint User;
        [FieldOffset(24)] internal uint Group;
        [FieldOffset(28)] internal ushort Mode;
        [FieldOffset(32)] internal ulong Number;
        [FieldOffset(40)] internal long Size;
        [FieldOffset(80)] internal long BirthSeconds;
        [FieldOffset(88)] internal uint BirthNanoseconds;
        [FieldOffset(96)] internal long ChangeSeconds;
        [FieldOffset(104)] internal uint ChangeNanoseconds;
        [FieldOffset(112)] internal long WriteSeconds;
        [FieldOffset(120)] internal uint WriteNanoseconds;
        [FieldOffset(136)] internal uint DeviceMajor;
        [FieldOffset(140)] internal uint DeviceMinor;

        internal readonly ulong Device => ((ulong)DeviceMajor << 32) | DeviceMinor;
    }

    /// <summary>epoll_ctl(2).</summary>
    [UnsupportedOSPlatform("windows")]
    internal static int EpollControl(int epoll, int operation, int descriptor, uint events, ulong data)
    {
        byte* packed = stackalloc byte[16];
        *(uint*)packed = events;
        *(ulong*)(packed + EpollDataOffset) = data;
        return EpollControl(epoll, operation, descriptor, packed);
    }

    /// <summary>Whether each write to the file waits for the device (open(2): O_DSYNC, which O_SYNC contains).</summary>
    [UnsupportedOSPlatform("windows")]
    internal static bool IsSynchronous(SafeFileHandle file) => TryGetFlags(file, out int flags) && (flags & O_DSYNC) != 0;

    /// <summary>
    /// Whether preallocation (fallocate(2)) has failed for lack of room or because the file system does: ENOSPC, EDQUOT, EFBIG, EIO, EROFS.
    /// </summary>
    internal static bool IsNoRoom(int errno) => errno is ENOSPC or EDQUOT or EFBIG or EIO or EROFS;

    /// <summary>The type of the file's file system (f_type of statfs(2)); -1 if the system does not report it.</summary>
    [UnsupportedOSPlatform("windows")]
    internal static long FileSystemOf(SafeFileHandle file)
    {
        // struct statfs has 120 bytes; this is more.
        long* status = stackalloc long[64];
        return FStatFS(file, status) == 0 ? status[0] & uint.MaxValue : -1;
    }

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "epoll_create1", SetLastError = true)]
    internal static partial int EpollCreate(int flags);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "epoll_wait", SetLastError = true)]
    internal static partial int EpollWait(int epoll, byte* events, int count, int timeoutMilliseconds);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "tee", SetLastError = true)]
    internal static partial nint Tee(SafeFileHandle source, int destination, nuint length, uint flags);

    /// <summary>open(2). The mode, for O_CREAT, works on Linux only: elsewhere a variadic argument is passed differently.</summary>
    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "open", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Open(string path, int flags, uint mode = 0);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "fcntl", SetLastError = true)]
    internal static partial int FCntl(SafeFileHandle file, int command, int argument);

    /// <summary>fcntl(2), F_GETFL: gets the access mode and the status flags of an open file description.</summary>
    [UnsupportedOSPlatform("windows")]
    internal static bool TryGetFlags(SafeFileHandle file, out int flags) => (flags = FCntl(file, F_GETFL, 0)) >= 0;

    /// <summary>
    /// fcntl(2), F_SETFL: changes status flags of an open file description. Returns less than 0 if it fails. Linux only: elsewhere the
    /// variadic argument is passed differently.
    /// </summary>
    [UnsupportedOSPlatform("windows")]
    internal static int ChangeFlags(SafeFileHandle file, int set = 0, int cleared = 0)
        => TryGetFlags(file, out int flags) ? FCntl(file, F_SETFL, (flags & ~cleared) | set) : -1;

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "flock", SetLastError = true)]
    internal static partial int FLock(int descriptor, int operation);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "preadv2", SetLastError = true)]
    internal static partial nint PReadV2(SafeFileHandle file, IoVector* vectors, int count, long offset, int flags);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "preadv", SetLastError = true)]
    internal static partial nint PReadV(SafeFileHandle file, IoVector* vectors, int count, long offset);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "readv", SetLastError = true)]
    internal static partial nint ReadV(SafeFileHandle file, IoVector* vectors, int count);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "pwritev2", SetLastError = true)]
    internal static partial nint PWriteV2(SafeFileHandle file, IoVector* vectors, int count, long offset, int flags);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "pwritev", SetLastError = true)]
    internal static partial nint PWriteV(SafeFileHandle file, IoVector* vectors, int count, long offset);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "writev", SetLastError = true)]
    internal static partial nint WriteV(SafeFileHandle file, IoVector* vectors, int count);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "ftruncate", SetLastError = true)]
    internal static partial int FTruncate(SafeFileHandle file, long length);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "fdatasync", SetLastError = true)]
    internal static partial int FDataSync(SafeFileHandle file);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "lseek", SetLastError = true)]
    internal static partial long LSeek(SafeFileHandle file, long offset, SeekOrigin origin);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "statx", SetLastError = true)]
    internal static partial int StatX(SafeFileHandle file, byte* path, int flags, uint mask, FileStatus* status);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "statx", SetLastError = true)]
    internal static partial int StatX(int folder, byte* path, int flags, uint mask, FileStatus* status);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "statx", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int StatX(int folder, string path, int flags, uint mask, FileStatus* status);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "poll", SetLastError = true)]
    internal static partial int Poll(PollDescriptor* descriptors, nuint count, int timeoutMilliseconds);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "eventfd", SetLastError = true)]
    internal static partial int EventDescriptor(uint value, int flags);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "pipe2", SetLastError = true)]
    internal static partial int Pipe2(int* descriptors, int flags);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "close", SetLastError = true)]
    internal static partial int Close(int descriptor);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "epoll_ctl", SetLastError = true)]
    private static partial int EpollControl(int epoll, int operation, int descriptor, byte* eventOfIt);

    /// <summary>fstatfs(2). The first member of struct statfs is the type of the file system.</summary>
    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "fstatfs", SetLastError = true)]
    private static partial int FStatFS(SafeFileHandle file, long* status);
}
