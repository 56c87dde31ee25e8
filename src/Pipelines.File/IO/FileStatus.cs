namespace Pipelines.File.IO;

/// <summary>What a path means at this moment.</summary>
internal enum NameMeaning
{
    /// <summary>Some file.</summary>
    File,

    /// <summary>None, or on Windows one whose delete is pending.</summary>
    Nothing,

    /// <summary>The system does not tell: the permission is lacking, or a server does not answer.</summary>
    Unknown,
}

/// <summary>Which file it is, and how long it is now. Asking may wait for the device, or for a server.</summary>
internal readonly struct FileStatus
{
    private const uint Wanted = Libc.STATX_SIZE | Libc.STATX_INO | Libc.STATX_BTIME;

    /// <summary><see langword="default"/> where the system does not tell.</summary>
    internal FileIdentity Identity { get; private init; }

    /// <summary>Bytes.</summary>
    internal long Length { get; private init; }

    /// <summary>Windows: nobody can open it by a name any more.</summary>
    internal bool IsDeleted { get; private init; }

    /// <summary><see langword="false"/>: the system does not tell.</summary>
    /// <exception cref="ObjectDisposedException">The file is closed.</exception>
    internal static bool TryOf(SafeFileHandle file, out FileStatus status)
    {
        if (OperatingSystem.IsLinux() && TryGet(file, Wanted, out Libc.FileStatus told))
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

    /// <summary>What the path means, which is followed through links.</summary>
    internal static NameMeaning OfName(string fullPath, out FileStatus status)
    {
        status = default;
        return OperatingSystem.IsLinux() ? OfNameLinux(fullPath, out status)
            : OperatingSystem.IsWindows() ? OfNameWindows(fullPath, out status)
            : OfNameAnywhere(fullPath);
    }

    /// <summary>What statx(2) tells of an open file. <see langword="false"/>: a sandbox refuses the call.</summary>
    /// <exception cref="ObjectDisposedException">The file is closed.</exception>
    internal static unsafe bool TryGet(SafeFileHandle file, uint wanted, out Libc.FileStatus told)
    {
        Unsafe.SkipInit(out told);
        byte empty = 0;
        fixed (Libc.FileStatus* status = &told)
        {
            return Libc.StatX(file, &empty, Libc.AT_EMPTY_PATH, wanted, status) == 0;
        }
    }

    internal static FileIdentity IdentityOf(in Libc.FileStatus status)
        => new(
            status.Device,
            status.Number,
            (status.Mask & Libc.STATX_BTIME) == 0 ? 0 : unchecked((status.BirthSeconds * 1_000_000_000) + status.BirthNanoseconds));

    private static unsafe NameMeaning OfNameLinux(string fullPath, out FileStatus status)
    {
        Libc.FileStatus told;
        bool isTold = Libc.StatX(Libc.AT_FDCWD, fullPath, 0, Wanted, &told) == 0;
        status = isTold ? Of(told) : default;
        return isTold ? NameMeaning.File : Marshal.GetLastPInvokeError() switch
        {
            Libc.ENOENT or Libc.ENOTDIR or Libc.ELOOP => NameMeaning.Nothing,

            // A sandbox refuses the call as such.
            Libc.EPERM or Libc.ENOSYS => OfNameAnywhere(fullPath),
            _ => NameMeaning.Unknown,
        };
    }

    private static NameMeaning OfNameAnywhere(string fullPath)
        => System.IO.File.Exists(fullPath) ? NameMeaning.Unknown : NameMeaning.Nothing;

    private static FileStatus Of(in Libc.FileStatus told) => new() { Identity = IdentityOf(told), Length = told.Size };

    // GetFileInformationByHandleEx: FileStandardInfo, FileIdInfo; GetFileInformationByHandle where a file system lacks the latter.
    private static unsafe bool TryOfWindows(SafeFileHandle file, out FileStatus status)
    {
        status = default;
        Kernel32.FileStandardInformation standard;
        if (Kernel32.GetFileInformationByHandleEx(file, Kernel32.FileStandardInfo, &standard,
            (uint)sizeof(Kernel32.FileStandardInformation)) == 0)
        {
            return false;
        }

        FileIdentity identity = default;
        Kernel32.FileIdInformation id;
        if (Kernel32.GetFileInformationByHandleEx(file, Kernel32.FileIdInfo, &id, (uint)sizeof(Kernel32.FileIdInformation)) != 0)
        {
            identity = new FileIdentity(id.Volume, id.NumberLow, created: 0, id.NumberHigh);
        }
        else
        {
            Kernel32.FileInformation information;
            if (Kernel32.GetFileInformationByHandle(file, &information) != 0)
            {
                identity = new FileIdentity(information.Volume, ((ulong)information.NumberHigh << 32) | information.NumberLow, created: 0);
            }
        }

        status = new FileStatus
        {
            Identity = identity,
            Length = standard.Length,
            IsDeleted = standard.IsDeletePending != 0 || standard.Links == 0,
        };
        return true;
    }

    private static unsafe NameMeaning OfNameWindows(string fullPath, out FileStatus status)
    {
        status = default;

        // A right that no other opener's share mode refuses.
        using SafeFileHandle file = Kernel32.CreateFile(
            OverlappedOpening.Extended(fullPath), Kernel32.FILE_READ_ATTRIBUTES, (uint)(FileShare.ReadWrite | FileShare.Delete), null,
                (uint)FileMode.Open, Kernel32.FILE_FLAG_BACKUP_SEMANTICS, 0);
        if (file.IsInvalid)
        {
            // ERROR_ACCESS_DENIED is what a file answers whose delete is pending: whoever may list the folder may read the attributes of
            // what is in it.
            return Marshal.GetLastPInvokeError()
                is Kernel32.ERROR_FILE_NOT_FOUND or Kernel32.ERROR_PATH_NOT_FOUND or Kernel32.ERROR_ACCESS_DENIED
                ? NameMeaning.Nothing : NameMeaning.Unknown;
        }

        return TryOfWindows(file, out status) ? NameMeaning.File : NameMeaning.Unknown;
    }
}
