namespace Pipelines.File.IO;

/// <summary>Calls of Windows. Each is described on the Win32 page of its name.</summary>
internal static unsafe partial class Kernel32
{
    private const string Library = "kernel32.dll";

    internal const int ERROR_SUCCESS = 0;
    internal const int ERROR_FILE_NOT_FOUND = 2;
    internal const int ERROR_PATH_NOT_FOUND = 3;
    internal const int ERROR_ACCESS_DENIED = 5;
    internal const int ERROR_INVALID_HANDLE = 6;
    internal const int ERROR_GEN_FAILURE = 31;
    internal const int ERROR_SHARING_VIOLATION = 32;
    internal const int ERROR_LOCK_VIOLATION = 33;
    internal const int ERROR_HANDLE_EOF = 38;
    internal const int ERROR_FILE_EXISTS = 80;
    internal const int ERROR_BROKEN_PIPE = 109;
    internal const int ERROR_DISK_FULL = 112;
    internal const int ERROR_ALREADY_EXISTS = 183;
    internal const int ERROR_FILENAME_EXCED_RANGE = 206;
    internal const int ERROR_FILE_TOO_LARGE = 223;
    internal const int ERROR_MORE_DATA = 234;
    internal const int ERROR_OPERATION_ABORTED = 995;
    internal const int ERROR_IO_PENDING = 997;
    internal const int ERROR_IO_DEVICE = 1117;

    internal const uint GENERIC_READ = 0x80000000;
    internal const uint GENERIC_WRITE = 0x40000000;
    internal const uint FILE_FLAG_OVERLAPPED = 0x40000000;
    internal const uint SECURITY_SQOS_PRESENT = 0x00100000;
    internal const uint SECURITY_ANONYMOUS = 0;
    internal const uint SEM_FAILCRITICALERRORS = 1;
    internal const byte FILE_SKIP_COMPLETION_PORT_ON_SUCCESS = 1;
    internal const int FileAllocationInfo = 5;
    internal const uint FILE_BEGIN = 0;
    internal const uint FILE_CURRENT = 1;
    internal const int STD_INPUT_HANDLE = -10;
    internal const int STD_OUTPUT_HANDLE = -11;

    /// <summary>What GENERIC_WRITE means for a file, but for FILE_WRITE_DATA: a handle that has only this writes to the end (File Access Rights Constants).</summary>
    internal const uint AppendRights = READ_CONTROL | SYNCHRONIZE | FILE_APPEND_DATA | FILE_WRITE_EA | FILE_WRITE_ATTRIBUTES;

    private const uint READ_CONTROL = 0x20000;
    private const uint SYNCHRONIZE = 0x100000;
    private const uint FILE_APPEND_DATA = 0x4;
    private const uint FILE_WRITE_EA = 0x10;
    private const uint FILE_WRITE_ATTRIBUTES = 0x100;

    /// <summary>SECURITY_ATTRIBUTES.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct SecurityAttributes
    {
        internal uint Size;
        internal nint SecurityDescriptor;
        internal int InheritHandle;
    }

    [LibraryImport(Library, EntryPoint = "CreateFileW", SetLastError = true, StringMarshalling = StringMarshalling.Utf16)]
    internal static partial SafeFileHandle CreateFile(string path, uint access, uint share, SecurityAttributes* security, uint disposition, uint flags, nint template);

    [LibraryImport(Library, EntryPoint = "ReadFile", SetLastError = true)]
    internal static partial int ReadFile(SafeFileHandle file, nint buffer, uint count, uint* transferred, NativeOverlapped* overlapped);

    [LibraryImport(Library, EntryPoint = "WriteFile", SetLastError = true)]
    internal static partial int WriteFile(SafeFileHandle file, nint buffer, uint count, uint* transferred, NativeOverlapped* overlapped);

    [LibraryImport(Library, EntryPoint = "CancelIoEx", SetLastError = true)]
    internal static partial int CancelIoEx(SafeFileHandle file, NativeOverlapped* overlapped);

    [LibraryImport(Library, EntryPoint = "FlushFileBuffers", SetLastError = true)]
    internal static partial int FlushFileBuffers(SafeFileHandle file);

    [LibraryImport(Library, EntryPoint = "SetFileCompletionNotificationModes", SetLastError = true)]
    internal static partial int SetFileCompletionNotificationModes(SafeFileHandle file, byte flags);

    [LibraryImport(Library, EntryPoint = "SetFileInformationByHandle", SetLastError = true)]
    internal static partial int SetFileInformationByHandle(SafeFileHandle file, int kind, void* information, uint size);

    [LibraryImport(Library, EntryPoint = "SetFilePointerEx", SetLastError = true)]
    internal static partial int SetFilePointerEx(SafeFileHandle file, long distance, out long position, uint method);

    [LibraryImport(Library, EntryPoint = "GetStdHandle", SetLastError = true)]
    internal static partial nint GetStdHandle(int which);

    [LibraryImport(Library, EntryPoint = "SetThreadErrorMode", SetLastError = true)]
    internal static partial int SetThreadErrorMode(uint mode, uint* earlier);
}
