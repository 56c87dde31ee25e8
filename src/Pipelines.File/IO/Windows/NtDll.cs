namespace Pipelines.File.IO;

/// <summary>Calls of Windows below Win32. The page of the same name in the documentation of Windows drivers describes each.</summary>
internal static unsafe partial class NtDll
{
    internal const int FileModeInformation = 16;
    internal const uint FILE_NO_INTERMEDIATE_BUFFERING = 8;
    internal const uint FLUSH_FLAGS_FILE_DATA_SYNC_ONLY = 4;

    /// <summary>The number of members of IO_STATUS_BLOCK: Status and Information.</summary>
    internal const int StatusMembers = 2;

    internal const int STATUS_NOT_IMPLEMENTED = unchecked((int)0xC0000002);

    private const string Library = "ntdll.dll";

    /// <summary>Whether NtFlushBuffersFileEx exists; Wine 8 lacks it.</summary>
    internal static bool HasFlushBuffersFileEx { get; } = NativeLibrary.TryLoad(Library, out nint library)
        && NativeLibrary.TryGetExport(library, "NtFlushBuffersFileEx", out _);

    [LibraryImport(Library, EntryPoint = "NtFlushBuffersFileEx")]
    internal static partial int FlushBuffersFileEx(SafeFileHandle file, uint flags, void* parameters, uint size, nint* status);

    [LibraryImport(Library, EntryPoint = "NtQueryInformationFile")]
    internal static partial int QueryInformationFile(SafeFileHandle file, nint* status, void* information, uint size, int kind);
}
