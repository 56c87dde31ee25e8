namespace Pipelines.File.IO;

/// <summary>
/// The identity and state of a regular file, by statx(2). Another file has another version, and so has the same file after a change of its
/// length, bytes, permissions or names. Two changes within one tick of the file system's clock may leave the same times. Another file never
/// has the same version, because no inode number is reused while its file is open.
/// </summary>
internal readonly record struct FileVersion(ulong Device, ulong Number, long Length, (long, uint) Written, (long, uint) Changed)
{
    private const uint Wanted = Libc.STATX_TYPE | Libc.STATX_INO | Libc.STATX_SIZE | Libc.STATX_MTIME | Libc.STATX_CTIME;

    /// <summary>
    /// Gets the version of the file that the path means now; symbolic links are followed. <see langword="default"/> if it is no regular
    /// file, or if the system does not report the version.
    /// </summary>
    [SkipLocalsInit]
    internal static FileVersion Of(string path) => FileStatus.TryGet(path, Wanted, out Libc.FileStatus told) ? Of(told) : default;

    /// <summary>Gets the version of an open file; <see langword="default"/> in the same cases.</summary>
    [SkipLocalsInit]
    internal static FileVersion Of(SafeFileHandle file) => FileStatus.TryGet(file, Wanted, out Libc.FileStatus told) ? Of(told) : default;

    private static FileVersion Of(in Libc.FileStatus told)
        => (told.Mask & Wanted) != Wanted || (told.Mode & Libc.S_IFMT) != Libc.S_IFREG ? default
            : new FileVersion(told.Device, told.Number, told.Size, (told.WriteSeconds, told.WriteNanoseconds),
                (told.ChangeSeconds, told.ChangeNanoseconds));
}
