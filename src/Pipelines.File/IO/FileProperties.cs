namespace Pipelines.File.IO;

/// <summary>The type of an open file, and its length at opening.</summary>
internal readonly partial struct FileProperties
{
    // statfs(2), f_type: proc, sysfs, debugfs, tracefs, cgroup, cgroup2, securityfs, configfs.
    private static readonly long[] s_pseudoFileSystems =
    [
        0x9fa0, 0x62656572, 0x64626720, 0x74726163, 0x27e0eb, 0x63677270, 0x73636673, 0x62656570,
    ];

    /// <summary>What statx(2) is asked for.</summary>
    internal const uint Wanted = Libc.STATX_TYPE | Libc.STATX_SIZE | Libc.STATX_INO | Libc.STATX_BTIME
        | Libc.STATX_MNT_ID_UNIQUE;

    /// <summary>Whether reads and writes have an offset.</summary>
    internal bool CanSeek { get; private init; }

    /// <summary>Whether it is a regular file, and not a device.</summary>
    internal bool IsRegular { get; private init; }

    /// <summary>Whether it is a FIFO or pipe; known on Linux only.</summary>
    internal bool IsFifo { get; private init; }

    /// <summary>Whether it is a character device, such as a terminal; known on Linux only.</summary>
    internal bool IsCharacterDevice { get; private init; }

    /// <summary>
    /// Windows: whether a read returns only when it is over, even on an overlapped handle, because the bytes must be decompressed,
    /// decrypted or fetched first.
    /// </summary>
    internal bool IsReadWithinTheCall { get; private init; }

    /// <summary>Whether <see cref="Length"/> is the number of bytes that can be read.</summary>
    private bool IsLengthKnown { get; init; }

    /// <summary>The length at opening, bytes; 0 for devices. Those of /proc report 0 and are not empty, those of /sys a page.</summary>
    internal long Length { get; private init; }

    /// <summary>The length at opening, bytes; <see langword="null"/> if unknown.</summary>
    internal long? KnownLength => IsLengthKnown ? Length : null;

    /// <summary>The identity of the file; <see langword="default"/> if opening did not ask for it.</summary>
    internal FileIdentity Identity { get; private init; }

    /// <summary>The type of a regular file's file system (f_type of statfs(2)); known on Linux only, else 0 or less.</summary>
    internal long FileSystem { get; init; }

    /// <summary>
    /// The identity of the file, even if opening did not ask for it; <see langword="default"/> if the system does not report it.
    /// </summary>
    /// <exception cref="ObjectDisposedException">The file is closed, and opening did not ask for its identity.</exception>
    internal FileIdentity IdentityOf(SafeFileHandle handle)
        => Identity != default ? Identity : FileStatus.TryGet(handle, out FileStatus status) ? status.Identity : default;

    /// <summary>Those of bytes that grow and are not (all) in a file: so many are there.</summary>
    internal static FileProperties OfBuffer(long length) => new() { CanSeek = true, Length = length };

    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="IOException">The system does not report the length.</exception>
    internal static FileProperties Of(SafeFileHandle handle, string? path)
        => OperatingSystem.IsLinux() ? OfLinux(handle, path) : OperatingSystem.IsWindows() ? OfWindows(handle, path, WindowsCalls.Default)
            : OfAny(handle, path);

    /// <summary>The path of an open file (proc_pid_fd(5)); <see langword="null"/> if the system does not report it.</summary>
    internal static string? PathOf(SafeFileHandle handle)
    {
        if (!OperatingSystem.IsLinux() || handle.IsClosed)
        {
            return null;
        }

        try
        {
            return new FileInfo($"/proc/self/fd/{handle.DangerousGetHandle()}").LinkTarget;
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return null;
        }
    }

    // One statx(2) for type, length and identity.
    [SkipLocalsInit]
    [SupportedOSPlatform("linux")]
    private static FileProperties OfLinux(SafeFileHandle handle, string? path)
        => FileStatus.TryGet(handle, Wanted, out Libc.FileStatus status) ? Of(handle, status, path) : OfAny(handle, path);

    /// <summary>From what statx(2) tells of the open file (<see cref="Wanted"/>).</summary>
    [SupportedOSPlatform("linux")]
    internal static FileProperties Of(SafeFileHandle handle, in Libc.FileStatus status, string? path)
    {
        int type = status.Mode & Libc.S_IFMT;
        if (type == Libc.S_IFDIR)
        {
            throw FileErrors.FromErrno(Libc.EACCES, path ?? PathOf(handle));
        }

        // A file of length 0 may be one of /proc, some of which cannot seek.
        bool isRegular = type == Libc.S_IFREG;
        bool isOnDevice = status.DeviceMajor != 0;
        long fileSystem = isRegular ? LocalFileSystems.TypeOf(handle, status) : 0;
        bool canSeek = isRegular && (status.Size > 0 || isOnDevice || LibcCalls.LSeek(handle, 0, SeekOrigin.Current) >= 0);
        return new FileProperties
        {
            CanSeek = canSeek || type == Libc.S_IFBLK,
            IsRegular = isRegular,
            IsFifo = type == Libc.S_IFIFO,
            IsCharacterDevice = type == Libc.S_IFCHR,
            Length = isRegular ? status.Size : 0,
            IsLengthKnown = canSeek && (isOnDevice || !IsPseudoFile(fileSystem, status.Size)),
            Identity = FileStatus.IdentityOf(status),
            FileSystem = fileSystem,
        };
    }

    /// <summary>
    /// Whether the kernel generates the file's content when it is read, so that its length is unknown: files of /proc report a length of 0,
    /// those of /sys a page. By statfs(2).
    /// </summary>
    private static bool IsPseudoFile(long fileSystem, long length)
        => (length == 0 || length == Environment.SystemPageSize) && Array.IndexOf(s_pseudoFileSystems, fileSystem) >= 0;

    private static FileProperties OfAny(SafeFileHandle handle, string? path)
    {
        try
        {
            long length = RandomAccess.GetLength(handle);
            return new FileProperties
            {
                CanSeek = true,
                IsRegular = true,
                Length = length,
                IsLengthKnown = true,
                FileSystem = OperatingSystem.IsLinux() ? LibcCalls.FileSystemOf(handle) : 0,
            };
        }
        catch (NotSupportedException)
        {
            return default;
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw FileErrors.WithPath(e, path);
        }
    }
}
