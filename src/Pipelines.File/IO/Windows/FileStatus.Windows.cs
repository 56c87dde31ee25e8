using Pipelines.File.IO;

namespace Pipelines.File;

// What Windows tells of a file.
public readonly partial record struct FileStatus
{
    // GetFileInformationByHandleEx: FileStandardInfo, FileIdInfo; GetFileInformationByHandle if the file system lacks FileIdInfo.
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
            IsRegular = standard.IsFolder == 0,
            IsFolder = standard.IsFolder != 0,
            IsDeleted = standard.IsDeletePending != 0 || standard.Links == 0,
        };
        return true;
    }

    private static unsafe NameMeaning OfNameWindows(string fullPath, out FileStatus status)
    {
        status = default;

        // No other opener's share mode refuses FILE_READ_ATTRIBUTES.
        using SafeFileHandle file = Kernel32.CreateFile(
            OverlappedOpening.Extended(fullPath), Kernel32.FILE_READ_ATTRIBUTES, (uint)(FileShare.ReadWrite | FileShare.Delete), null,
            (uint)FileMode.Open, Kernel32.FILE_FLAG_BACKUP_SEMANTICS, 0);
        if (file.IsInvalid)
        {
            // ERROR_ACCESS_DENIED means that the delete of the file is pending: a user who may list a folder may read the attributes of its
            // files.
            return Marshal.GetLastPInvokeError()
                is Kernel32.ERROR_FILE_NOT_FOUND or Kernel32.ERROR_PATH_NOT_FOUND or Kernel32.ERROR_ACCESS_DENIED
                ? NameMeaning.Nothing : NameMeaning.Unknown;
        }

        if (!TryOfWindows(file, out status))
        {
            return NameMeaning.Unknown;
        }

        status = status with { LastWritten = System.IO.File.GetLastWriteTimeUtc(file) };
        return NameMeaning.File;
    }
}
