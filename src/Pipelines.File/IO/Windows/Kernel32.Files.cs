namespace Pipelines.File.IO;

/// <summary>The calls of Windows that tell what a file is, that wait in place, and that call off what another thread waits for.</summary>
internal static unsafe partial class Kernel32
{
    internal const int ERROR_PIPE_NOT_CONNECTED = 233;

    /// <summary>What an overlapped says while the system has it.</summary>
    internal const int STATUS_PENDING = 0x103;

    internal const int FileBasicInfo = 0;
    internal const uint FILE_TYPE_PIPE = 3;
    internal const uint FILE_FLAG_NO_BUFFERING = 0x20000000;
    internal const uint FILE_FLAG_WRITE_THROUGH = 0x80000000;
    internal const uint THREAD_TERMINATE = 1;

    /// <summary>FILE_BASIC_INFO.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct FileBasicInformation
    {
        internal long CreationTime;
        internal long LastAccessTime;
        internal long LastWriteTime;
        internal long ChangeTime;
        internal uint FileAttributes;
    }

    [LibraryImport(Library, EntryPoint = "ReOpenFile", SetLastError = true)]
    internal static partial SafeFileHandle ReOpenFile(SafeFileHandle file, uint access, uint share, uint flags);

    [LibraryImport(Library, EntryPoint = "GetFileType", SetLastError = true)]
    internal static partial uint GetFileType(SafeFileHandle file);

    [LibraryImport(Library, EntryPoint = "PeekNamedPipe", SetLastError = true)]
    internal static partial int PeekNamedPipe(SafeFileHandle pipe, void* buffer, uint size, uint* read, uint* available, uint* leftOfMessage);

    [LibraryImport(Library, EntryPoint = "GetOverlappedResult", SetLastError = true)]
    internal static partial int GetOverlappedResult(nint file, NativeOverlapped* overlapped, uint* transferred, int wait);

    [LibraryImport(Library, EntryPoint = "GetCurrentThreadId")]
    internal static partial uint GetCurrentThreadId();

    /// <summary>A thread's handle is closed as a file's is.</summary>
    [LibraryImport(Library, EntryPoint = "OpenThread", SetLastError = true)]
    internal static partial SafeFileHandle OpenThread(uint access, int inherits, uint thread);

    [LibraryImport(Library, EntryPoint = "CancelSynchronousIo", SetLastError = true)]
    internal static partial int CancelSynchronousIo(SafeFileHandle thread);
}
