namespace Pipelines.File.IO;

/// <summary>The calls of Windows that concern names.</summary>
internal static unsafe partial class Kernel32
{
    internal const int ERROR_INVALID_FUNCTION = 1;
    internal const int ERROR_NOT_SUPPORTED = 50;
    internal const int ERROR_INVALID_PARAMETER = 87;
    internal const int ERROR_USER_MAPPED_FILE = 1224;

    internal const uint DELETE = 0x00010000;
    internal const uint FILE_FLAG_BACKUP_SEMANTICS = 0x02000000;
    internal const int FileRenameInfoEx = 22;
    internal const uint FILE_RENAME_FLAG_REPLACE_IF_EXISTS = 1;
    internal const uint FILE_RENAME_FLAG_POSIX_SEMANTICS = 2;
    internal const uint MOVEFILE_REPLACE_EXISTING = 1;
    internal const uint MOVEFILE_WRITE_THROUGH = 8;

    internal const uint FILE_READ_ATTRIBUTES = 0x80;
    internal const int FileStandardInfo = 1;
    internal const int FileIdInfo = 18;

    /// <summary>FILE_STANDARD_INFO.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct FileStandardInformation
    {
        internal long AllocatedLength;
        internal long Length;
        internal uint Links;
        internal byte IsDeletePending;
        internal byte IsFolder;
    }

    /// <summary>FILE_ID_INFO.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct FileIdInformation
    {
        internal ulong Volume;
        internal ulong NumberLow;
        internal ulong NumberHigh;
    }

    /// <summary>BY_HANDLE_FILE_INFORMATION.</summary>
    [StructLayout(LayoutKind.Explicit, Size = 52)]
    internal struct FileInformation
    {
        [FieldOffset(28)] internal uint Volume;
        [FieldOffset(44)] internal uint NumberHigh;
        [FieldOffset(48)] internal uint NumberLow;
    }

    /// <summary>FILE_RENAME_INFO of 64-bit Windows, without its name, which follows.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct FileRenameInformation
    {
        internal uint Flags;
        internal nint RootDirectory;
        internal uint NameBytes;
    }

    [LibraryImport(Library, EntryPoint = "MoveFileExW", SetLastError = true, StringMarshalling = StringMarshalling.Utf16)]
    internal static partial int MoveFileEx(string from, string to, uint flags);

    [LibraryImport(Library, EntryPoint = "GetFileInformationByHandleEx", SetLastError = true)]
    internal static partial int GetFileInformationByHandleEx(SafeFileHandle handle, int kind, void* information, uint size);

    [LibraryImport(Library, EntryPoint = "GetFileInformationByHandle", SetLastError = true)]
    internal static partial int GetFileInformationByHandle(SafeFileHandle handle, FileInformation* information);
}
