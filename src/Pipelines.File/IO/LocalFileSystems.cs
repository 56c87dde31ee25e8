namespace Pipelines.File.IO;

/// <summary>File systems that only this kernel changes, so that statx(2) shows every change of a file at once.</summary>
internal static class LocalFileSystems
{
    /// <summary>ext2 to ext4.</summary>
    internal const long Ext = 0xef53;

    internal const long Xfs = 0x58465342;

    private const string Mounts = "/proc/self/mountinfo";
    private const long Overlay = 0x794c7630;
    private const long Btrfs = 0x9123683e;
    private const long Plan9 = 0x01021997;

    // The types of file systems by the number of the mount, which no later mount gets. So a file costs no call, and asks no server.
    private static KnownNumber? s_mounts;

    // Whether it is 9p (1), by the number of a device that is none: file systems without a device are rarely many. The kernel gives the
    // number to another one when this one is gone, so all are forgotten when the mounts have changed.
    private static KnownNumber? s_plan9;

    // The mounts of this process, open so that poll(2) tells of changes (proc_pid_mountinfo(5)); invalid if the system has no descriptor.
    // Guarded by the lock, because each change is told once.
    private static readonly Lock s_gate = new();
    private static SafeFileHandle? s_mountTable;

    /// <summary>
    /// Whether the file is on one of them; <see langword="false"/> for unknown ones. NFS, SMB and FUSE answer from a cache of attributes,
    /// and overlayfs shows the files of another file system.
    /// </summary>
    internal static bool Hold(in FileProperties file) => IsLocal(file.FileSystem);

    /// <param name="type">f_type of statfs(2).</param>
    internal static bool IsLocal(long type)

        // statfs(2), <linux/magic.h>: ext2 to ext4, xfs, btrfs, tmpfs, ramfs, f2fs, zfs, bcachefs, jfs, reiserfs, nilfs2, squashfs, erofs,
        // ISO 9660.
        => (type & uint.MaxValue) is Ext or Xfs or Btrfs or 0x01021994 or 0x858458f6 or 0xf2f52010 or 0x2fc12fc1 or 0xca451a4e
            or 0x3153464a or 0x52654973 or 0x3434 or 0x73717368 or 0xe0f5e1e2 or 0x9660;

    internal static bool IsBtrfs(in FileProperties file) => file.FileSystem == Btrfs;

    /// <summary>
    /// Whether a shared lock, as .NET takes it for a reader, keeps every other process from writing: CIFS, SMB 2 and 3, SMB.
    /// </summary>
    /// <param name="type">f_type of statfs(2).</param>
    internal static bool LocksKeepOthersOut(long type) => type is 0xff534d42 or 0xfe534d42 or 0x517b;

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
        if (isNumbered && KnownNumber.Find(s_mounts, told.Mount) is { } known)
        {
            return known.Value;
        }

        long type = LibcCalls.FileSystemOf(file);
        if (told.DeviceMajor == 0 && (IsLocal(type) || type == Overlay) && IsPlan9(told.Device))
        {
            // Its statfs(2) answers what the host's does, and the host changes the files.
            type = Plan9;
        }

        if (isNumbered && type >= 0)
        {
            KnownNumber.Add(ref s_mounts, told.Mount, type);
        }

        return type;
    }

    [SupportedOSPlatform("linux")]
    private static bool IsPlan9(ulong device)
    {
        lock (s_gate)
        {
            s_mountTable ??= OpenMounts();
            s_plan9 = HaveMountsChanged(s_mountTable) ? null : s_plan9;
        }

        if (KnownNumber.Find(s_plan9, device) is { } known)
        {
            return known.Value == 1;
        }

        bool isPlan9 = IsPlan9(ReadMounts(), device);
        KnownNumber.Add(ref s_plan9, device, isPlan9 ? 1 : 0);
        return isPlan9;
    }

    /// <summary>Opens the mounts of this process, for <see cref="HaveMountsChanged"/>.</summary>
    internal static SafeFileHandle OpenMounts()
        => new(OperatingSystem.IsLinux() ? LibcCalls.Open(Mounts, Libc.O_RDONLY | Libc.O_CLOEXEC) : -1, ownsHandle: true);

    /// <summary>Whether a mount was made or removed since the last call, or since the table was opened.</summary>
    [SupportedOSPlatform("linux")]
    internal static bool HaveMountsChanged(SafeFileHandle table) => table.IsInvalid || UnixCalls.Default.IsReady(table, Libc.POLLPRI);

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
            return System.IO.File.ReadAllText(Mounts);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return "";
        }
    }

    /// <summary>
    /// What is known of a number, and what was known before: a list. Most processes need very few, and the runtime would have to compile a
    /// dictionary of numbers when the first file of a process is opened.
    /// </summary>
    internal sealed class KnownNumber(ulong number, long value, KnownNumber? before)
    {
        /// <summary>The maximum number of them. To look through so many takes less time than to ask the system.</summary>
        internal const int Max = 64;

        private readonly ulong _number = number;
        private readonly KnownNumber? _before = before;
        private readonly int _count = (before?._count ?? 0) + 1;

        internal long Value => value;

        internal static KnownNumber? Find(KnownNumber? last, ulong number)
        {
            KnownNumber? one = last;
            while (one is not null && one._number != number)
            {
                one = one._before;
            }

            return one;
        }

        /// <summary>
        /// Adds a number. If there are <see cref="Max"/>, they are forgotten first. What two threads add at the same time may be lost, and
        /// is asked for again.
        /// </summary>
        internal static void Add(ref KnownNumber? last, ulong number, long value)
        {
            KnownNumber? before = Volatile.Read(ref last);
            Volatile.Write(ref last, new(number, value, before is { _count: < Max } ? before : null));
        }
    }
}
