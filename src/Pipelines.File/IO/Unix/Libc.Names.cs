namespace Pipelines.File.IO;

/// <summary>Calls that concern names: creating, linking, renaming and removing files, and the folders that hold the names.</summary>
internal static unsafe partial class Libc
{
    internal const int ENOENT = 2;
    internal const int EEXIST = 17;
    internal const int ENOTDIR = 20;
    internal const int ENOSPC = 28;

    internal const int O_CLOEXECOfMacOS = 0x1000000;
    internal const int O_EXCL = 0x80;
    internal const int O_SYNC = 0x101000;
    internal const int O_DSYNC = 0x1000;

    internal const string AccessList = "system.posix_acl_access";
    internal const int O_PATH = 0x200000;
    internal const int ELOOP = 40;
    internal const int AT_SYMLINK_NOFOLLOW = 0x100;
    internal const int AT_EACCESS = 0x200;
    internal const int AT_SYMLINK_FOLLOW = 0x400;
    internal const uint RENAME_NOREPLACE = 1;
    internal const int W_OK = 2;
    internal const int FALLOC_FL_KEEP_SIZE = 1;
    internal const uint STATX_MODE = 0x2;
    internal const uint STATX_UID = 0x8;
    internal const uint STATX_GID = 0x10;
    internal const int S_IFLNK = 0xA000;

    internal static int ENAMETOOLONG => OperatingSystem.IsLinux() ? 36 : 63;

    /// <summary>open(2). The number depends on the architecture.</summary>
    internal static int O_DIRECTORY => OperatingSystem.IsMacOS() ? 0x100000
        : RuntimeInformation.ProcessArchitecture is Architecture.Arm64 or Architecture.Arm or Architecture.Ppc64le ? 0x4000 : 0x10000;

    internal static int O_TMPFILE => 0x400000 | O_DIRECTORY;

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "faccessat", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int FAccessAt(int folder, string path, int mode, int flags);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "geteuid")]
    internal static partial uint GetEffectiveUser();

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "fchmod", SetLastError = true)]
    internal static partial int FChMod(SafeFileHandle file, uint mode);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "fchown", SetLastError = true)]
    internal static partial int FChOwn(SafeFileHandle file, uint user, uint group);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "getxattr", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial nint GetXAttr(string path, string name, byte* value, nint length);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "fsetxattr", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int FSetXAttr(SafeFileHandle file, string name, byte* value, nint length, int flags);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "fremovexattr", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int FRemoveXAttr(SafeFileHandle file, string name);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "fallocate", SetLastError = true)]
    internal static partial int FAllocate(SafeFileHandle file, int mode, long offset, long length);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "linkat", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int LinkAt(int fromFolder, string from, int toFolder, string to, int flags);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "link", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Link(string from, string to);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "rename", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Rename(string from, string to);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "renameat2", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int RenameAt2(int fromFolder, string from, int toFolder, string to, uint flags);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "unlink", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Unlink(string path);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "fsync", SetLastError = true)]
    internal static partial int FSync(SafeFileHandle file);
}
