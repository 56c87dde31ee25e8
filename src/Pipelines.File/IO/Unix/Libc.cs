namespace Pipelines.File.IO;

/// <summary>The numbers and structures of <see cref="LibcCalls"/>, which code for every system may name.</summary>
internal static class Libc
{
    // The numbers are those of Linux. Those that other systems use, too, are the same there.
    internal const int EPERM = 1;
    internal const int EINTR = 4;
    internal const int EIO = 5;
    internal const int ENXIO = 6;
    internal const int EBADF = 9;
    internal const int EAGAIN = 11;
    internal const int EACCES = 13;
    internal const int EBUSY = 16;
    internal const int EISDIR = 21;
    internal const int EINVAL = 22;
    internal const int ENOTTY = 25;
    internal const int ETXTBSY = 26;
    internal const int EFBIG = 27;
    internal const int ESPIPE = 29;
    internal const int EROFS = 30;
    internal const int EAGAINOfMacOS = 35;
    internal const int ENOTSUPOfMacOS = 45;
    internal const int EMLINK = 31;
    internal const int EPIPE = 32;
    internal const int ENOSYS = 38;
    internal const int EOPNOTSUPP = 95;
    internal const int EDQUOT = 122;

    /// <summary>preadv2(2), pwritev2(2): the call fails with EAGAIN instead of waiting.</summary>
    internal const int RWF_NOWAIT = 0x8;

    internal const short POLLIN = 0x1;
    internal const short POLLPRI = 0x2;
    internal const short POLLOUT = 0x4;

    internal const int EPOLL_CTL_ADD = 1;
    internal const int EPOLL_CTL_DEL = 2;
    internal const int EPOLL_CTL_MOD = 3;
    internal const uint EPOLLONESHOT = 1u << 30;
    internal const int EPOLL_CLOEXEC = 0x80000;
    internal const uint SPLICE_F_NONBLOCK = 2;

    internal static int AT_FDCWD => OperatingSystem.IsMacOS() ? -2 : -100;

    internal const int AT_EMPTY_PATH = 0x1000;
    internal const uint STATX_TYPE = 0x1;
    internal const uint STATX_NLINK = 0x4;
    internal const uint STATX_MTIME = 0x40;
    internal const uint STATX_CTIME = 0x80;
    internal const uint STATX_INO = 0x100;
    internal const uint STATX_SIZE = 0x200;
    internal const uint STATX_BASIC_STATS = 0x7ff;
    internal const uint STATX_BTIME = 0x800;
    internal const uint STATX_MNT_ID_UNIQUE = 0x4000;
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
    internal const int O_CLOEXEC = 0x80000;
    internal const int O_NONBLOCK = 0x800;
    internal const int F_GETFD = 1;
    internal const int F_GETFL = 3;
    internal const int F_DUPFD_CLOEXEC = 1030;

    /// <summary>macOS, fcntl(2): writes the file to the device, and empties the device's cache.</summary>
    internal const int F_FULLFSYNC = 51;
    internal const int F_SETFL = 4;

    /// <summary>The member f_flags of struct statfs, in members of 64 bits.</summary>
    internal const int StatFsFlags = 10;

    internal const long ST_RDONLY = 1;
    internal const int LOCK_SH = 1;
    internal const int LOCK_EX = 2;
    internal const int LOCK_NB = 4;
    internal const int LOCK_UN = 8;

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
        [FieldOffset(144)] internal ulong Mount;

        internal readonly ulong Device => ((ulong)DeviceMajor << 32) | DeviceMinor;
    }

    internal const int ENOENT = 2;
    internal const int EEXIST = 17;
    internal const int EXDEV = 18;
    internal const int ENOTDIR = 20;
    internal const int ENODATA = 61;
    internal const int ENOSPC = 28;

    internal const int O_CLOEXECOfMacOS = 0x1000000;
    internal const int O_EXCL = 0x80;
    internal const int O_SYNC = 0x101000;
    internal const int O_DSYNC = 0x1000;

    internal const string AccessList = "system.posix_acl_access";
    internal const string DefaultAccessList = "system.posix_acl_default";
    internal const int O_PATH = 0x200000;
    internal const int ELOOP = 40;
    internal const int AT_SYMLINK_NOFOLLOW = 0x100;
    internal const int AT_EACCESS = 0x200;
    internal const int AT_SYMLINK_FOLLOW = 0x400;
    internal const int AT_STATX_FORCE_SYNC = 0x2000;
    internal const uint RENAME_NOREPLACE = 1;
    internal const int W_OK = 2;
    internal const int FALLOC_FL_KEEP_SIZE = 1;
    internal const uint STATX_MODE = 0x2;
    internal const uint STATX_UID = 0x8;
    internal const uint STATX_GID = 0x10;
    internal const int S_IFLNK = 0xA000;

    /// <summary>
    /// Whether a sandbox (seccomp(2)) or a file system without the call may answer so. Then the call may have been unnecessary, or an older
    /// one does it; if the errno means something else, that one gets it, too.
    /// </summary>
    internal static bool MayRefuse(long errno) => errno is EPERM or EACCES or ENOSYS or EINVAL or EOPNOTSUPP;

    internal static int ENAMETOOLONG => OperatingSystem.IsLinux() ? 36 : 63;

    /// <summary>open(2). The number depends on the architecture.</summary>
    internal static int O_DIRECTORY => OperatingSystem.IsMacOS() ? 0x100000
        : RuntimeInformation.ProcessArchitecture is Architecture.Arm64 or Architecture.Arm or Architecture.Ppc64le ? 0x4000 : 0x10000;

    /// <summary>open(2). The number depends on the architecture. Linux only.</summary>
    internal static int O_NOFOLLOW
        => RuntimeInformation.ProcessArchitecture is Architecture.Arm64 or Architecture.Arm or Architecture.Ppc64le ? 0x8000 : 0x20000;

    internal static int O_TMPFILE => 0x400000 | O_DIRECTORY;

    internal const int POSIX_FADV_RANDOM = 1;
    internal const int POSIX_FADV_SEQUENTIAL = 2;
    internal const int POSIX_FADV_DONTNEED = 4;
    internal const uint SYNC_FILE_RANGE_WAIT_BEFORE = 1;
    internal const uint SYNC_FILE_RANGE_WRITE = 2;
    internal const uint SYNC_FILE_RANGE_WAIT_AFTER = 4;

    /// <summary>The number of cachestat(2), the same on every architecture.</summary>
    internal const nint CacheStatNumber = 451;

    /// <summary>
    /// The members of struct cachestat: the numbers of pages that are cached, dirty, under writeback, evicted, and recently evicted.
    /// </summary>
    internal const int CacheStatusMembers = 5;

    internal const int IN_CLOEXEC = 0x80000;
    internal const uint IN_MODIFY = 0x2;
    internal const uint IN_ATTRIB = 0x4;
    internal const uint IN_DELETE_SELF = 0x400;
    internal const uint IN_MOVE_SELF = 0x800;
    internal const uint IN_Q_OVERFLOW = 0x4000;
    internal const uint IN_IGNORED = 0x8000;
    internal const uint IN_ONESHOT = 0x80000000;

    /// <summary>struct inotify_event, without the name that can follow.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct WatchEvent
    {
        internal int Watch;
        internal uint Mask;
        internal uint Cookie;
        internal uint NameLength;
    }
}
