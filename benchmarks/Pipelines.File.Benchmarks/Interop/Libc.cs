using System.Runtime.InteropServices;

namespace FilePipelinesBenchmarks.Interop;

/// <summary>The system calls that are measured by themselves. Unix.</summary>
internal static unsafe partial class Libc
{
    private const string Library = "libc";

    [LibraryImport(Library, EntryPoint = "pread", SetLastError = true)]
    internal static partial nint PRead(int descriptor, byte* buffer, nuint length, long offset);

    [LibraryImport(Library, EntryPoint = "pwrite", SetLastError = true)]
    internal static partial nint PWrite(int descriptor, byte* buffer, nuint length, long offset);

    [LibraryImport(Library, EntryPoint = "mkfifo", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int MakeFifo(string path, uint mode);

    [LibraryImport(Library, EntryPoint = "posix_fadvise")]
    internal static partial int Advise(int descriptor, long offset, long length, int advice);
}
