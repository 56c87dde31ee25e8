namespace Pipelines.File.IO;

/// <summary>
/// Which regular file it is and in which state, as statx(2) tells: another file, or a change of its length, its bytes, its permissions or
/// its names, makes another version. Two changes within one tick of the file system's clock may share the times of one version; they never
/// share it with another file, as no inode number is given anew while its file is open.
/// </summary>
internal readonly record struct FileVersion(ulong Device, ulong Number, long Length, (long, uint) Written, (long, uint) Changed)
{
    private const uint Wanted = Libc.STATX_TYPE | Libc.STATX_INO | Libc.STATX_SIZE | Libc.STATX_MTIME | Libc.STATX_CTIME;

    /// <summary>Whether this system tells it.</summary>
    internal static bool IsKnown => FileOpening.IsLinux;

    /// <summary>
    /// What the path means now, behind symbolic links. <see langword="false"/>: no regular file, or the system does not tell.
    /// </summary>
    /// <param name="path">Absolute, in UTF-8, and ends with a 0.</param>
    /// <param name="version">The version.</param>
    [SkipLocalsInit]
    internal static unsafe bool TryGet(ReadOnlySpan<byte> path, out FileVersion version)
    {
        Libc.FileStatus status;
        fixed (byte* start = path)
        {
            return TryTake(Libc.StatX(Libc.AT_FDCWD, start, 0, Wanted, &status) == 0, status, out version);
        }
    }

    /// <summary>What is open. <see langword="false"/> as for a path.</summary>
    [SkipLocalsInit]
    internal static bool TryGet(SafeFileHandle handle, out FileVersion version)
        => TryTake(FileStatus.TryGet(handle, Wanted, out Libc.FileStatus status), status, out version);

    /// <summary>Whether an open file still has a name, and closing it so frees no blocks.</summary>
    [SkipLocalsInit]
    internal static bool HasName(SafeFileHandle handle)
        => FileStatus.TryGet(handle, Libc.STATX_NLINK, out Libc.FileStatus status) && status.Links > 0;

    private static bool TryTake(bool isTold, in Libc.FileStatus status, out FileVersion version)
    {
        isTold = isTold && (status.Mask & Wanted) == Wanted && (status.Mode & Libc.S_IFMT) == Libc.S_IFREG;
        version = !isTold ? default : new FileVersion(status.Device, status.Number, status.Size,
            (status.WriteSeconds, status.WriteNanoseconds), (status.ChangeSeconds, status.ChangeNanoseconds));
        return isTold;
    }
}
