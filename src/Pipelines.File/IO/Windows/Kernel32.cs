namespace Pipelines.File.IO;

/// <summary>Calls of Windows. The Win32 page of the same name describes each.</summary>
internal static unsafe partial class Kernel32
{
    private const string Library = "kernel32.dll";

    internal const int ERROR_SUCCESS = 0;
    internal const int ERROR_INVALID_FUNCTION = 1;
    internal const int ERROR_FILE_NOT_FOUND = 2;
    internal const int ERROR_PATH_NOT_FOUND = 3;
    internal const int ERROR_ACCESS_DENIED = 5;
    internal const int ERROR_GEN_FAILURE = 31;
    internal const int ERROR_SHARING_VIOLATION = 32;
    internal const int ERROR_LOCK_VIOLATION = 33;
    internal const int ERROR_HANDLE_EOF = 38;
    internal const int ERROR_NOT_SUPPORTED = 50;
    internal const int ERROR_FILE_EXISTS = 80;
    internal const int ERROR_INVALID_PARAMETER = 87;
    internal const int ERROR_BROKEN_PIPE = 109;
    internal const int ERROR_DISK_FULL = 112;
    internal const int ERROR_ALREADY_EXISTS = 183;
    internal const int ERROR_PIPE_NOT_CONNECTED = 233;
    internal const int ERROR_MORE_DATA = 234;
    internal const int ERROR_OPERATION_ABORTED = 995;
    internal const int ERROR_IO_PENDING = 997;
    internal const int ERROR_USER_MAPPED_FILE = 1224;

    /// <summary>The status in an OVERLAPPED while the call is running.</summary>
    internal const int STATUS_PENDING = 0x103;

    internal const uint GENERIC_READ = 0x80000000;
    internal const uint GENERIC_WRITE = 0x40000000;
    internal const int STD_INPUT_HANDLE = -10;
    internal const int STD_OUTPUT_HANDLE = -11;
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
    [StructLayout(LayoutKind.Explicit, Size = 24)]
    internal struct FileStandardInformation
    {
        [FieldOffset(8)] internal long Length;
        [FieldOffset(16)] internal uint Links;
        [FieldOffset(20)] internal byte IsDeletePending;
        [FieldOffset(21)] internal byte IsFolder;
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

    /// <summary>FILE_RENAME_INFO of 64-bit Windows, with the first character of its name.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct FileRenameInformation
    {
        internal uint Flags;
        internal nint RootDirectory;
        internal uint NameBytes;
        internal char Name;
    }

    [LibraryImport(Library, EntryPoint = "CreateFileW", SetLastError = true, StringMarshalling = StringMarshalling.Utf16)]
    internal static partial SafeFileHandle CreateFile(string path, uint access, uint share, void* security, uint disposition, uint flags,
        nint template);

    [LibraryImport(Library, EntryPoint = "ReadFile", SetLastError = true)]
    internal static partial int ReadFile(SafeFileHandle file, nint buffer, uint count, uint* transferred, NativeOverlapped* overlapped);

    [LibraryImport(Library, EntryPoint = "WriteFile", SetLastError = true)]
    internal static partial int WriteFile(SafeFileHandle file, nint buffer, uint count, uint* transferred, NativeOverlapped* overlapped);

    [LibraryImport(Library, EntryPoint = "CancelIoEx", SetLastError = true)]
    internal static partial int CancelIoEx(SafeFileHandle file, NativeOverlapped* overlapped);

    [LibraryImport(Library, EntryPoint = "FlushFileBuffers", SetLastError = true)]
    internal static partial int FlushFileBuffers(SafeFileHandle file);

    [LibraryImport(Library, EntryPoint = "SetFileInformationByHandle", SetLastError = true)]
    internal static partial int SetFileInformationByHandle(SafeFileHandle file, int kind, void* information, uint size);

    [LibraryImport(Library, EntryPoint = "SetFilePointerEx", SetLastError = true)]
    internal static partial int SetFilePointerEx(SafeFileHandle file, long distance, out long position, SeekOrigin origin);

    [LibraryImport(Library, EntryPoint = "GetStdHandle", SetLastError = true)]
    internal static partial nint GetStdHandle(int which);

    [LibraryImport(Library, EntryPoint = "MoveFileExW", SetLastError = true, StringMarshalling = StringMarshalling.Utf16)]
    internal static partial int MoveFileEx(string from, string to, uint flags);

    [LibraryImport(Library, EntryPoint = "GetFileInformationByHandleEx", SetLastError = true)]
    internal static partial int GetFileInformationByHandleEx(SafeFileHandle handle, int kind, void* information, uint size);

    [LibraryImport(Library, EntryPoint = "GetFileInformationByHandle", SetLastError = true)]
    internal static partial int GetFileInformationByHandle(SafeFileHandle handle, FileInformation* information);

    [LibraryImport(Library, EntryPoint = "ReOpenFile", SetLastError = true)]
    internal static partial SafeFileHandle ReOpenFile(SafeFileHandle file, uint access, uint share, uint flags);

    [LibraryImport(Library, EntryPoint = "PeekNamedPipe", SetLastError = true)]
    internal static partial int PeekNamedPipe(SafeFileHandle pipe, void* buffer, uint size, uint* read, uint* available,
        uint* leftOfMessage);

    [LibraryImport(Library, EntryPoint = "GetOverlappedResult", SetLastError = true)]
    internal static partial int GetOverlappedResult(nint file, NativeOverlapped* overlapped, uint* transferred, int wait);
}
