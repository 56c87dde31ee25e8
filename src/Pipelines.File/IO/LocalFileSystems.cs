using System.Collections.Concurrent;

namespace Pipelines.File.IO;

/// <summary>File systems that only this kernel changes, so that statx(2) shows every change of a file at once.</summary>
internal static class LocalFileSystems
{
    // statfs(2), <linux/magic.h>: ext2 to ext4, xfs, btrfs, tmpfs, ramfs, f2fs, zfs, bcachefs, jfs, reiserfs, nilfs2, squashfs, erofs, ISO
    // 9660.
    private static readonly long[] s_known =
    [
        Ext, Xfs, Btrfs, 0x01021994, 0x858458f6, 0xf2f52010, 0x2fc12fc1, 0xca451a4e, 0x3153464a, 0x52654973, 0x3434,
        0x73717368, 0xe0f5e1e2, 0x9660,
    ];

    /// <summary>ext2 to ext4.</summary>
    internal const long Ext = 0xef53;

    internal const long Xfs = 0x58465342;

    private const long Overlay = 0x794c7630;
    private const long Btrfs = 0x9123683e;
    private const long Plan9 = 0x01021997;

    // CIFS, SMB 2 and 3, SMB.
    private static readonly long[] s_smb = [0xff534d42, 0xfe534d42, 0x517b];

    /// <summary>The maximum number of mounts that are remembered.</summary>
    private const int MaxMounts = 1000;

    // By the number of the mount, which no later mount gets. So a file costs no call for it, and asks no server.
    private static readonly ConcurrentDictionary<ulong, long> s_mounts = new();

    // Whether it is 9p, by the number of a device that is none: file systems without a device are rarely many.
    private static readonly ConcurrentDictionary<ulong, bool> s_plan9 = new();

    /// <summary>
    /// Whether the file is on one of them; <see langword="false"/> for unknown ones. NFS, SMB and FUSE answer from a cache of attributes,
    /// and overlayfs shows the files of another file system.
    /// </summary>
    internal static bool Hold(in FileProperties file) => IsLocal(file.FileSystem);

    /// <param name="type">f_type of statfs(2).</param>
    internal static bool IsLocal(long type) => Array.IndexOf(s_known, type & uint.MaxValue) >= 0;

    internal static bool IsBtrfs(in FileProperties file) => file.FileSystem == Btrfs;

    /// <summary>Whether a shared lock, as .NET takes it for a reader, keeps every other process from writing: SMB.</summary>
    /// <param name="type">f_type of statfs(2).</param>
    internal static bool LocksKeepOthersOut(long type) => Array.IndexOf(s_smb, type) >= 0;

    /// <summary>Whether the server learns that a file is open for appending only when it is opened: 9p.</summary>
    internal static bool AppendsAsOpened(in FileProperties file) => file.FileSystem == Plan9;

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
        if (told.DeviceMajor == 0 && (IsLocal(type) || type == Overlay)
            && s_plan9.GetOrAdd(told.Device, static device => IsPlan9(ReadMounts(), device)))
        {
            // Its statfs(2) answers what the host's does, and the host changes the files.
            type = Plan9;
        }

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

    /// <summary>Whether the mount of that device is one of 9p, by the lines of /proc/self/mountinfo (proc_pid_mountinfo(5)).</summary>
    internal static bool IsPlan9(string mounts, ulong device)
    {
        string wanted = $"{device >> 32}:{device & uint.MaxValue}";
        foreach (string line in mounts.Split('\n'))
        {
            string[] words = line.Split(' ');
            int type = Array.IndexOf(words, "-") + 1;
            if (words.Length > 2 && words[2] == wanted && type > 0 && type < words.Length)
            {
                return words[type] == "9p";
            }
        }

        return false;
    }

    internal static string ReadMounts()
    {
        try
        {
            return System.IO.File.ReadAllText("/proc/self/mountinfo");
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return "";
        }
    }
}
