namespace FilePipelines.Devices.Tests;

/// <summary>A system call that can fail, with every errno of its man page that a right program may get: not EBADF and EFAULT.</summary>
/// <param name="Number">On x86-64.</param>
/// <param name="Name">As in strace(1).</param>
/// <param name="File">Which argument tells the file.</param>
/// <param name="Errors">The errnos by name.</param>
internal sealed record SystemCall(int Number, string Name, SystemCallFile File, string Errors)
{
    private const string Paths = "EACCES ELOOP ENAMETOOLONG ENOENT ENOMEM ENOTDIR";

    // write(2), and EOPNOTSUPP of pwritev2(2). EAGAIN is for what does not block, EPIPE for pipes.
    private const string Writes = "EDQUOT EFBIG EINTR EINVAL EIO ENOSPC EPERM";
    private const string Reads = "EINTR EINVAL EIO EISDIR";

    // EFBIG is EOVERFLOW in today's kernels.
    private const string Opens = "EACCES EBUSY EDQUOT EEXIST EINTR EINVAL EISDIR ELOOP EMFILE ENAMETOOLONG ENFILE ENODEV ENOENT ENOMEM "
        + "ENOSPC ENOTDIR ENXIO EOPNOTSUPP EOVERFLOW EPERM EROFS ETXTBSY EAGAIN";

    // fsync(2), and EDQUOT of newer pages.
    private const string Syncs = "EINTR EIO ENOSPC EROFS EDQUOT EINVAL";
    private const string Links = Paths + " EDQUOT EEXIST EINVAL EIO EMLINK ENOSPC EPERM EROFS EXDEV";
    private const string Renames = Paths + " EBUSY EDQUOT EEXIST EINVAL EISDIR EMLINK ENOSPC ENOTEMPTY EPERM EROFS EXDEV";

    private static readonly Dictionary<string, int> s_numbers = (
        "EPERM=1 ENOENT=2 EINTR=4 EIO=5 ENXIO=6 EAGAIN=11 ENOMEM=12 EACCES=13 EBUSY=16 EEXIST=17 EXDEV=18 ENODEV=19 "
            + "ENOTDIR=20 EISDIR=21 EINVAL=22 ENFILE=23 EMFILE=24 ETXTBSY=26 EFBIG=27 ENOSPC=28 ESPIPE=29 EROFS=30 EMLINK=31 "
            + "ERANGE=34 ENAMETOOLONG=36 ENOLCK=37 ENOSYS=38 ENOTEMPTY=39 ELOOP=40 ENODATA=61 EOVERFLOW=75 EOPNOTSUPP=95 "
            + "EDQUOT=122").Split(' ').Select(static pair => pair.Split('='))
        .ToDictionary(static pair => pair[0], static pair => int.Parse(pair[1], System.Globalization.CultureInfo.InvariantCulture));

    /// <summary>
    /// All that the library and the runtime make for files. lseek(2) is not among them: it fails for no file that has an offset.
    /// </summary>
    internal static SystemCall[] All { get; } =
    [
        new(0, "read", SystemCallFile.Descriptor, Reads),
        new(1, "write", SystemCallFile.Descriptor, Writes),
        new(2, "open", SystemCallFile.Path, Opens),
        new(3, "close", SystemCallFile.Descriptor, "EINTR EIO ENOSPC EDQUOT"),
        new(4, "stat", SystemCallFile.Path, Paths + " EOVERFLOW"),
        new(5, "fstat", SystemCallFile.Descriptor, "ENOMEM EOVERFLOW"),
        new(6, "lstat", SystemCallFile.Path, Paths + " EOVERFLOW"),
        new(17, "pread64", SystemCallFile.Descriptor, Reads),
        new(18, "pwrite64", SystemCallFile.Descriptor, Writes),
        new(19, "readv", SystemCallFile.Descriptor, Reads),
        new(20, "writev", SystemCallFile.Descriptor, Writes),
        new(21, "access", SystemCallFile.Path, Paths + " EIO EPERM EROFS"),
        new(32, "dup", SystemCallFile.Descriptor, "EMFILE"),
        new(72, "fcntl", SystemCallFile.Descriptor, "EMFILE EINVAL EPERM"),
        new(73, "flock", SystemCallFile.Descriptor, "EINTR EINVAL ENOLCK EAGAIN"),
        new(74, "fsync", SystemCallFile.Descriptor, Syncs),
        new(75, "fdatasync", SystemCallFile.Descriptor, Syncs),
        new(77, "ftruncate", SystemCallFile.Descriptor, "EFBIG EINTR EINVAL EIO EPERM EROFS ETXTBSY ENOSPC"),
        new(82, "rename", SystemCallFile.Path, Renames),
        new(83, "mkdir", SystemCallFile.Path, Paths + " EDQUOT EEXIST EMLINK ENOSPC EPERM EROFS"),
        new(84, "rmdir", SystemCallFile.Path, Paths + " EBUSY EINVAL ENOTEMPTY EPERM EROFS"),
        new(86, "link", SystemCallFile.Path, Links),
        new(87, "unlink", SystemCallFile.Path, Paths + " EBUSY EIO EISDIR EPERM EROFS"),
        new(89, "readlink", SystemCallFile.Path, Paths + " EINVAL EIO"),
        new(90, "chmod", SystemCallFile.Path, Paths + " EIO EPERM EROFS"),
        new(91, "fchmod", SystemCallFile.Descriptor, "EIO ENOMEM EOPNOTSUPP EPERM EROFS"),
        new(93, "fchown", SystemCallFile.Descriptor, "EIO ENOMEM EPERM EROFS EINVAL EDQUOT"),
        new(137, "statfs", SystemCallFile.Path, Paths + " EINTR EIO ENOSYS EOVERFLOW"),
        new(138, "fstatfs", SystemCallFile.Descriptor, "EINTR EIO ENOMEM ENOSYS EOVERFLOW"),
        new(190, "fsetxattr", SystemCallFile.Descriptor, "EDQUOT EEXIST ENODATA ENOSPC EOPNOTSUPP EPERM ERANGE"),
        new(191, "getxattr", SystemCallFile.Path, "ENODATA EOPNOTSUPP ERANGE"),
        new(193, "fgetxattr", SystemCallFile.Descriptor, "ENODATA EOPNOTSUPP ERANGE"),
        new(199, "fremovexattr", SystemCallFile.Descriptor, "ENODATA EOPNOTSUPP EPERM"),
        new(217, "getdents64", SystemCallFile.Descriptor, "EINVAL ENOENT ENOTDIR"),
        new(221, "fadvise64", SystemCallFile.Descriptor, "EINVAL ESPIPE"),
        new(254, "inotify_add_watch", SystemCallFile.PathAt, "EACCES EEXIST EINVAL ENAMETOOLONG ENOENT ENOMEM ENOSPC ENOTDIR"),
        new(257, "openat", SystemCallFile.PathAt, Opens),
        new(258, "mkdirat", SystemCallFile.PathAt, Paths + " EDQUOT EEXIST EMLINK ENOSPC EPERM EROFS"),
        new(262, "newfstatat", SystemCallFile.PathAt, Paths + " EOVERFLOW EINVAL"),
        new(263, "unlinkat", SystemCallFile.PathAt, Paths + " EBUSY EIO EISDIR EPERM EROFS"),
        new(264, "renameat", SystemCallFile.PathAt, Renames),
        new(265, "linkat", SystemCallFile.PathAt, Links),
        new(267, "readlinkat", SystemCallFile.PathAt, Paths + " EINVAL EIO"),
        new(268, "fchmodat", SystemCallFile.PathAt, Paths + " EIO EPERM EROFS"),
        new(269, "faccessat", SystemCallFile.PathAt, Paths + " EIO EPERM EROFS"),
        new(277, "sync_file_range", SystemCallFile.Descriptor, "EINVAL EIO ENOMEM ENOSPC ESPIPE"),
        new(280, "utimensat", SystemCallFile.PathAt, "EACCES EINVAL EPERM EROFS"),
        new(285, "fallocate", SystemCallFile.Descriptor, "EFBIG EINTR EINVAL EIO ENODEV ENOSPC ENOSYS EOPNOTSUPP EPERM ESPIPE ETXTBSY"),
        new(292, "dup3", SystemCallFile.Descriptor, "EBUSY EINTR EINVAL EMFILE"),
        new(295, "preadv", SystemCallFile.Descriptor, Reads),
        new(296, "pwritev", SystemCallFile.Descriptor, Writes),
        new(316, "renameat2", SystemCallFile.PathAt, Renames),
        new(327, "preadv2", SystemCallFile.Descriptor, Reads + " EOPNOTSUPP EAGAIN"),
        new(328, "pwritev2", SystemCallFile.Descriptor, Writes + " EOPNOTSUPP"),
        new(332, "statx", SystemCallFile.PathAt, Paths),
        new(439, "faccessat2", SystemCallFile.PathAt, Paths + " EIO EPERM EROFS"),
        new(451, "cachestat", SystemCallFile.Descriptor, "EINVAL EOPNOTSUPP"),
    ];

    internal static int NumberOf(string errno) => s_numbers[errno];

    internal IEnumerable<(string Name, int Number)> Errnos => Errors.Split(' ').Select(static name => (name, s_numbers[name]));
}
