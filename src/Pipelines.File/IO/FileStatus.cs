namespace Pipelines.File.IO;

/// <summary>What a path means now.</summary>
internal enum NameMeaning
{
    /// <summary>A file.</summary>
    File,

    /// <summary>No file, or on Windows one whose delete is pending.</summary>
    Nothing,

    /// <summary>Unknown: the permission is lacking, or a server does not answer.</summary>
    Unknown,
}

/// <summary>The identity, the current length and the last write of a file. Getting them may wait for the device or a server.</summary>
internal readonly partial record struct FileStatus
{
    private const uint Wanted = Libc.STATX_SIZE | Libc.STATX_INO | Libc.STATX_BTIME | Libc.STATX_MTIME
        | Libc.STATX_CTIME;

    private static readonly long s_firstSecond = (DateTime.MinValue - DateTime.UnixEpoch).Ticks / TimeSpan.TicksPerSecond;
    private static readonly long s_lastSecond = (DateTime.MaxValue - DateTime.UnixEpoch).Ticks / TimeSpan.TicksPerSecond;

    /// <summary>The identity; <see langword="default"/> if the system does not report it.</summary>
    internal FileIdentity Identity { get; private init; }

    /// <summary>The length, bytes.</summary>
    internal long Length { get; private init; }

    /// <summary>When the file was last written to, UTC; <see langword="default"/> if the system does not report it.</summary>
    internal DateTime LastWritten { get; private init; }

    /// <summary>When it was changed last, which nobody can set; <see langword="default"/> if the system does not report it.</summary>
    internal (long Seconds, uint Nanoseconds) Changed { get; private init; }

    /// <summary>Windows: whether the file has no name any more, or its delete is pending.</summary>
    internal bool IsDeleted { get; private init; }

    /// <summary>Gets the status of an open file. Returns <see langword="false"/> if the system does not report it.</summary>
    /// <exception cref="ObjectDisposedException">The file is closed.</exception>
    internal static bool TryOf(SafeFileHandle file, out FileStatus status)
    {
        if (TryGet(file, Wanted, out Libc.FileStatus told))
        {
            status = Of(told);
            return true;
        }

        if (OperatingSystem.IsWindows())
        {
            return TryOfWindows(file, out status);
        }

        try
        {
            status = new FileStatus { Length = RandomAccess.GetLength(file) };
            return true;
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or NotSupportedException)
        {
            status = default;
            return false;
        }
    }

    /// <summary>
    /// Gets the status of a file that may be closed meanwhile; <see langword="null"/> if it is, or if the system does not report it.
    /// </summary>
    internal static FileStatus? Ask(SafeFileHandle file)
    {
        try
        {
            return TryOf(file, out FileStatus status) ? status : null;
        }
        catch (ObjectDisposedException)
        {
            return null;
        }
    }

    /// <summary>Gets what the path means; symbolic links are followed.</summary>
    internal static NameMeaning OfName(string fullPath, out FileStatus status)
        => OperatingSystem.IsLinux() ? OfNameLinux(fullPath, out status)
            : OperatingSystem.IsWindows() ? OfNameWindows(fullPath, out status)
            : OfNameAnywhere(fullPath, out status);

    /// <summary>
    /// Calls statx(2) for an open file. Returns <see langword="false"/> if the call fails, as in a sandbox that refuses it, and on other
    /// systems than Linux.
    /// </summary>
    /// <exception cref="ObjectDisposedException">The file is closed.</exception>
    internal static unsafe bool TryGet(SafeFileHandle file, uint wanted, out Libc.FileStatus told)
    {
        Unsafe.SkipInit(out told);
        fixed (Libc.FileStatus* status = &told)
        {
            return OperatingSystem.IsLinux() && LibcCalls.StatX(file, "", Libc.AT_EMPTY_PATH, wanted, status) == 0;
        }
    }

    /// <summary>Calls statx(2) for a path, in the same way; errno is GetLastPInvokeError.</summary>
    internal static unsafe bool TryGet(string path, uint wanted, out Libc.FileStatus told, int flags = 0)
    {
        Unsafe.SkipInit(out told);
        fixed (Libc.FileStatus* status = &told)
        {
            return OperatingSystem.IsLinux() && LibcCalls.StatX(Libc.AT_FDCWD, path, flags, wanted, status) == 0;
        }
    }

    /// <summary>
    /// The type of the file that the path means now (S_IFMT of inode(7)); 0 if there is none, or if the system does not tell.
    /// </summary>
    [SkipLocalsInit]
    internal static int TypeOf(string path) => TryGet(path, Libc.STATX_TYPE, out Libc.FileStatus told) ? told.Mode & Libc.S_IFMT : 0;

    internal static FileIdentity IdentityOf(in Libc.FileStatus status)
        => new(
            status.Device,
            status.Number,
            (status.Mask & Libc.STATX_BTIME) == 0 ? 0 : unchecked((status.BirthSeconds * 1_000_000_000) + status.BirthNanoseconds));

    [SupportedOSPlatform("linux")]
    private static NameMeaning OfNameLinux(string fullPath, out FileStatus status)
    {
        bool isTold = TryGet(fullPath, Wanted, out Libc.FileStatus told);
        status = isTold ? Of(told) : default;
        return isTold ? NameMeaning.File : Marshal.GetLastPInvokeError() switch
        {
            Libc.ENOENT or Libc.ENOTDIR or Libc.ELOOP => NameMeaning.Nothing,

            // A sandbox refuses statx(2).
            Libc.EPERM or Libc.ENOSYS => OfNameAnywhere(fullPath, out status),
            _ => NameMeaning.Unknown,
        };
    }

    private static NameMeaning OfNameAnywhere(string fullPath, out FileStatus status)
    {
        try
        {
            status = new FileStatus { LastWritten = System.IO.File.GetLastWriteTimeUtc(fullPath) };
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentOutOfRangeException)
        {
            // It is unknown.
            status = default;
        }

        return System.IO.File.Exists(fullPath) ? NameMeaning.Unknown : NameMeaning.Nothing;
    }

    private static FileStatus Of(in Libc.FileStatus told) => new()
    {
        Identity = IdentityOf(told),
        Length = told.Size,

        // A file system may have times that a DateTime cannot have.
        LastWritten = DateTime.UnixEpoch.AddSeconds(Math.Clamp(told.WriteSeconds, s_firstSecond, s_lastSecond))
            .AddTicks(told.WriteNanoseconds / TimeSpan.NanosecondsPerTick),
        Changed = (told.ChangeSeconds, told.ChangeNanoseconds),
    };
}
