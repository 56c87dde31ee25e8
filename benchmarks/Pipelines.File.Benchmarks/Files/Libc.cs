using System.ComponentModel;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

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

    [LibraryImport(Library, EntryPoint = "fsync", SetLastError = true)]
    internal static partial int FSync(int descriptor);

    [LibraryImport(Library, EntryPoint = "sync")]
    internal static partial void SyncAll();

    // Linux only: elsewhere the variable argument is passed another way.
    [LibraryImport(Library, EntryPoint = "open", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Open(string path, int flags, uint mode);

    [LibraryImport(Library, EntryPoint = "getppid")]
    internal static partial int GetPPid();

    [LibraryImport(Library, EntryPoint = "close", SetLastError = true)]
    internal static partial int Close(int descriptor);

    [LibraryImport(Library, EntryPoint = "statx", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int StatX(int folder, string path, int flags, uint mask, byte* status);

    [LibraryImport(Library, EntryPoint = "access", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Access(string path, int mode);

    [LibraryImport(Library, EntryPoint = "fchmod", SetLastError = true)]
    internal static partial int FChMod(int descriptor, uint mode);

    [LibraryImport(Library, EntryPoint = "linkat", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int LinkAt(int fromFolder, string from, int toFolder, string to, int flags);

    [LibraryImport(Library, EntryPoint = "rename", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Rename(string from, string to);
}
