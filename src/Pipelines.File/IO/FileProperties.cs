namespace Pipelines.File.IO;

/// <summary>What kind of file a handle is, and how long it was.</summary>
internal readonly struct FileProperties
{
    // statfs(2): proc, sysfs, debugfs, tracefs, cgroup, cgroup2, securityfs, configfs.
    private static readonly long[] s_madeUp = [0x9fa0, 0x62656572, 0x64626720, 0x74726163, 0x27e0eb, 0x63677270, 0x73636673, 0x62656570];

    // FILE_ATTRIBUTE_RECALL_ON_OPEN and FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS (File Attribute Constants): the bytes are somewhere else, and
    // have no name in the enum.
    private const FileAttributes WithinTheCall
        = FileAttributes.Compressed | FileAttributes.Encrypted | FileAttributes.Offline | (FileAttributes)0x40000
            | (FileAttributes)0x400000;

    /// <summary>Reads and writes name an offset.</summary>
    internal bool CanSeek { get; private init; }

    /// <summary>A file of a file system rather than a device.</summary>
    internal bool IsRegular { get; private init; }

    /// <summary>A FIFO or pipe, where that is known (Linux).</summary>
    internal bool IsFifo { get; private init; }

    /// <summary>A terminal or the like, where that is known (Linux).</summary>
    internal bool IsCharacterDevice { get; private init; }

    /// <summary>
    /// Windows: overlapped or not, a read returns only when it has ended, as the bytes have to be unpacked or fetched first.
    /// </summary>
    internal bool IsReadWithinTheCall { get; private init; }

    /// <summary>Whether <see cref="Length"/> is what can be read.</summary>
    private bool IsLengthKnown { get; init; }

    /// <summary>Bytes when it was opened; 0 where that is not known (devices, and files of /proc, which say 0 and are not empty).</summary>
    internal long Length { get; private init; }

    /// <summary>Bytes when it was opened; <see langword="null"/> where that is not known.</summary>
    internal long? KnownLength => IsLengthKnown ? Length : null;

    /// <summary>
    /// Linux: the file system lies on a block device, and so on no server, and its files are not made up by the kernel. Those that have no
    /// device of their own have a major number of 0; btrfs, tmpfs and overlayfs are among them.
    /// </summary>
    internal bool IsOnBlockDevice => IsRegular && Identity.Volume >> 32 != 0;

    /// <summary>The same file after it was emptied.</summary>
    internal FileProperties Emptied => this with { Length = 0 };

    /// <summary>Which file it is; <see langword="default"/> where opening did not tell.</summary>
    internal FileIdentity Identity { get; private init; }

    /// <summary>Which file it is, whatever opening told; <see langword="default"/> where the system does not tell.</summary>
    /// <exception cref="ObjectDisposedException">The file is closed, and opening did not tell.</exception>
    internal FileIdentity IdentityOf(SafeFileHandle handle)
        => Identity != default ? Identity : FileStatus.TryOf(handle, out FileStatus status) ? status.Identity : default;

    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="IOException">The system does not tell.</exception>
    internal static FileProperties Of(SafeFileHandle handle, string? path)
        => OperatingSystem.IsLinux() ? OfLinux(handle, path) : OperatingSystem.IsWindows() ? OfWindows(handle, path, WindowsCalls.Default)
            : OfAny(handle);

    /// <inheritdoc cref="Of"/>
    internal static FileProperties OfWindows(SafeFileHandle handle, string? path, WindowsCalls calls)
    {
        FileAttributes attributes = calls.AttributesOf(handle);
        if ((attributes & FileAttributes.Directory) != 0)
        {
            throw FileErrors.FromWin32(Kernel32.ERROR_ACCESS_DENIED, path);
        }

        bool isDevice = path is not null && OverlappedOpening.IsDevice(path);
        try
        {
            FileProperties properties = OfAny(handle);
            return properties with
            {
                IsRegular = properties.IsRegular && !isDevice,
                IsReadWithinTheCall = (attributes & WithinTheCall) != 0,
            };
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException && isDevice)
        {
            // A disk, or a volume, that does not tell how long it is.
            return new FileProperties { CanSeek = true };
        }
    }

    /// <summary>The path behind a handle where the system tells it (proc_pid_fd(5)), else <see langword="null"/>.</summary>
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

    // One call for the type, the length and the identity.
    [SkipLocalsInit]
    private static FileProperties OfLinux(SafeFileHandle handle, string? path)
    {
        if (!FileStatus.TryGet(handle, Libc.STATX_TYPE | Libc.STATX_SIZE | Libc.STATX_INO | Libc.STATX_BTIME, out Libc.FileStatus status))
        {
            return OfAny(handle);
        }

        int type = status.Mode & Libc.S_IFMT;
        if (type == Libc.S_IFDIR)
        {
            throw FileErrors.FromErrno(Libc.EACCES, path ?? PathOf(handle));
        }

        // A file that says 0 may be one of /proc that cannot seek.
        bool isRegular = type == Libc.S_IFREG;
        bool isOnDevice = status.DeviceMajor != 0;
        bool canSeek = isRegular && (status.Size > 0 || isOnDevice || Libc.LSeek(handle, 0, SeekOrigin.Current) >= 0);
        return new FileProperties
        {
            CanSeek = canSeek || type == Libc.S_IFBLK,
            IsRegular = isRegular,
            IsFifo = type == Libc.S_IFIFO,
            IsCharacterDevice = type == Libc.S_IFCHR,
            Length = isRegular ? status.Size : 0,
            IsLengthKnown = canSeek && (isOnDevice || !IsPseudoFile(handle, status.Size)),
            Identity = FileStatus.IdentityOf(status),
        };
    }

    /// <summary>
    /// Whether the kernel makes the file up when it is read, and so knows no length: it says 0 for a file of /proc, and a page for one of
    /// /sys. statfs(2).
    /// </summary>
    private static bool IsPseudoFile(SafeFileHandle handle, long length)
        => (length == 0 || length == Environment.SystemPageSize) && Environment.Is64BitProcess
            && Array.IndexOf(s_madeUp, Libc.FileSystemOf(handle)) >= 0;

    private static FileProperties OfAny(SafeFileHandle handle)
    {
        try
        {
            long length = RandomAccess.GetLength(handle);
            return new FileProperties { CanSeek = true, IsRegular = true, Length = length, IsLengthKnown = true };
        }
        catch (NotSupportedException)
        {
            return default;
        }
    }
}
