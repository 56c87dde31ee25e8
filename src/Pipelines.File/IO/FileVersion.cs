namespace Pipelines.File.IO;

/// <summary>
/// The identity and state of a regular file, by statx(2). Another file has another version, and so has the same file after a change of its
/// length, bytes, permissions or names. Two changes within one tick of the file system's clock may leave the same times. Another file never
/// has the same version, because no inode number is reused while its file is open.
/// </summary>
internal readonly record struct FileVersion(ulong Device, ulong Number, long Length, (long, uint) Written, (long, uint) Changed)
{
    private const uint Wanted = Libc.STATX_TYPE | Libc.STATX_INO | Libc.STATX_SIZE | Libc.STATX_MTIME | Libc.STATX_CTIME;

    /// <summary>Whether this system supports it.</summary>
    [SupportedOSPlatformGuard("linux")]
    internal static bool IsKnown => FileOpening.IsLinux;

    /// <summary>
    /// Gets the version of the file that the path means now; symbolic links are followed. Returns <see langword="false"/> if it is no
    /// regular file, or if the system does not report the version.
    /// </summary>
    /// <param name="path">An absolute path in UTF-8 that ends with a 0 byte.</param>
    /// <param name="version">The version.</param>
    [SkipLocalsInit]
    internal static unsafe bool TryGet(ReadOnlySpan<byte> path, out FileVersion version)
    {
        if (!IsKnown)
        {
            version = default;
            return false;
        }

        Libc.FileStatus status;
        fixed (byte* start = path)
        {
            return TryTake(LibcCalls.StatX(Libc.AT_FDCWD, start, 0, Wanted, &status) == 0, status, out version);
        }
    }

    /// <summary>Gets the version of an open file. Returns <see langword="false"/> in the same cases.</summary>
    [SkipLocalsInit]
    internal static bool TryGet(SafeFileHandle handle, out FileVersion version)
    {
        if (!IsKnown)
        {
            version = default;
            return false;
        }

        return TryTake(FileStatus.TryGet(handle, Wanted, out Libc.FileStatus status), status, out version);
    }

    /// <summary>Whether an open file still has a name, so that closing it frees no blocks.</summary>
    [SkipLocalsInit]
    internal static bool HasName(SafeFileHandle handle)
        => IsKnown && FileStatus.TryGet(handle, Libc.STATX_NLINK, out Libc.FileStatus status) && status.Links > 0;

    private static bool TryTake(bool isTold, in Libc.FileStatus status, out FileVersion version)
    {
        isTold = isTold && (status.Mask & Wanted) == Wanted && (status.Mode & Libc.S_IFMT) == Libc.S_IFREG;
        version = !isTold ? default : new FileVersion(status.Device, status.Number, status.Size,
            (status.WriteSeconds, status.WriteNanoseconds), (status.ChangeSeconds, status.ChangeNanoseconds));
        return isTold;
    }
}
