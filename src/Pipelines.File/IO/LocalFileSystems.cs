using System.Collections.Concurrent;

namespace Pipelines.File.IO;

/// <summary>File systems that only this kernel changes, so that statx(2) shows every change of a file at once.</summary>
internal static class LocalFileSystems
{
    // statfs(2), <linux/magic.h>: ext2 to ext4, xfs, btrfs, tmpfs, ramfs, f2fs, zfs, bcachefs, jfs, reiserfs, nilfs2, squashfs, erofs, ISO
    // 9660.
    private static readonly long[] s_known =
    [
        0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x858458f6, 0xf2f52010, 0x2fc12fc1, 0xca451a4e, 0x3153464a, 0x52654973, 0x3434,
        0x73717368, 0xe0f5e1e2, 0x9660,
    ];

    private const long Overlay = 0x794c7630;
    private const long Btrfs = 0x9123683e;

    /// <summary>The maximum number of mounts that are remembered.</summary>
    private const int MaxMounts = 1000;

    // By the number of the mount, which no later mount gets. So a file costs no call for it, and asks no server.
    private static readonly ConcurrentDictionary<ulong, long> s_mounts = new();

    /// <summary>
    /// Whether the file is on one of them; <see langword="false"/> for unknown ones. NFS, SMB and FUSE answer from a cache of attributes,
    /// and overlayfs shows the files of another file system.
    /// </summary>
    internal static bool Hold(in FileProperties file) => IsLocal(file.FileSystem);

    /// <param name="type">f_type of statfs(2).</param>
    internal static bool IsLocal(long type) => Array.IndexOf(s_known, type & uint.MaxValue) >= 0;

    internal static bool IsBtrfs(in FileProperties file) => file.FileSystem == Btrfs;

    /// <summary>
    /// Whether a write to the file is a copy into this kernel's page cache: on one of them, or on overlayfs, which is on one of them.
    /// </summary>
    internal static bool TakeWrites(in FileProperties file) => Hold(file) || file.FileSystem == Overlay;

    /// <summary>
    /// The type of the file system (f_type of statfs(2)); -1 if the system does not tell. The call may ask a server, so it is made once for
    /// each mount where the kernel numbers mounts for good (Linux 6.8).
    /// </summary>
    [SupportedOSPlatform("linux")]
    internal static long TypeOf(SafeFileHandle file, in Libc.FileStatus told)
    {
        bool isNumbered = (told.Mask & Libc.STATX_MNT_ID_UNIQUE) != 0;
        if (isNumbered && s_mounts.TryGetValue(told.Mount, out long known))
        {
            return known;
        }

        long type = LibcCalls.FileSystemOf(file);
        if (isNumbered && type >= 0)
        {
            if (s_mounts.Count >= MaxMounts)
            {
                s_mounts.Clear();
            }

            s_mounts[told.Mount] = type;
        }

        return type;
    }
}
