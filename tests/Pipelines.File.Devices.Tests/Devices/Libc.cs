using System.Runtime.InteropServices;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// The system calls that make and mount a disk, memfd_create(2), ioctl(2), mount(2) and umount2(2).
/// </summary>
internal static partial class Libc
{
    internal const uint CloseOnExec = 1;
    internal const int Detach = 2;

    internal const int Eio = 5;
    internal const int Ebusy = 16;
    internal const int Enospc = 28;

    [LibraryImport("libc", EntryPoint = "memfd_create", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int CreateMemory(string name, uint flags);

    [LibraryImport("libc", EntryPoint = "ioctl", SetLastError = true)]
    internal static partial int Control(SafeHandle file, ulong request, nint argument);

    [LibraryImport("libc", EntryPoint = "mount", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Mount(string source, string target, string type, ulong flags, string data);

    [LibraryImport("libc", EntryPoint = "umount2", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int Unmount(string target, int flags);

    [LibraryImport("libc", EntryPoint = "geteuid")]
    internal static partial uint EffectiveUser();

    internal static IOException Error(string what)
        => new($"{what}: {Marshal.GetPInvokeErrorMessage(Marshal.GetLastPInvokeError())}", Marshal.GetLastPInvokeError());
}
