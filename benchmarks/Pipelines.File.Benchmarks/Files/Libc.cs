using System.ComponentModel;
using System.Runtime.InteropServices;

namespace FilePipelines.Benchmarks;

/// <summary>The system calls that are measured by themselves. Unix.</summary>
internal static unsafe partial class Libc
{
    private const string Library = "libc";

    [LibraryImport(Library, EntryPoint = "pread", SetLastError = true)]
    private static partial nint PRead(int descriptor, byte* buffer, nuint length, long offset);

    [LibraryImport(Library, EntryPoint = "pwrite", SetLastError = true)]
    private static partial nint PWrite(int descriptor, byte* buffer, nuint length, long offset);

    internal static int PRead(SafeFileHandle handle, Span<byte> buffer, long offset)
    {
        fixed (byte* start = buffer)
        {
            return (int)PRead((int)handle.DangerousGetHandle(), start, (nuint)buffer.Length, offset);
        }
    }

    internal static void PWriteAll(SafeFileHandle handle, ReadOnlySpan<byte> bytes, long offset)
    {
        fixed (byte* start = bytes)
        {
            if (PWrite((int)handle.DangerousGetHandle(), start, (nuint)bytes.Length, offset) != bytes.Length)
            {
                throw new Win32Exception();
            }
        }
    }

    [LibraryImport(Library, EntryPoint = "mkfifo", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int MakeFifo(string path, uint mode);

    [LibraryImport(Library, EntryPoint = "posix_fadvise")]
    internal static partial int Advise(int descriptor, long offset, long length, int advice);

    [LibraryImport(Library, EntryPoint = "fdatasync", SetLastError = true)]
    internal static partial int FDataSync(int descriptor);

    [LibraryImport(Library, EntryPoint = "sync")]
    internal static partial void SyncAll();

    [LibraryImport(Library, EntryPoint = "getppid")]
    internal static partial int GetPPid();
}
