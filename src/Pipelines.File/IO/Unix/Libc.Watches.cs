namespace Pipelines.File.IO;

/// <summary>Calls of inotify(7). Linux only.</summary>
internal static unsafe partial class Libc
{
    internal const int IN_CLOEXEC = 0x80000;
    internal const uint IN_MODIFY = 0x2;
    internal const uint IN_ATTRIB = 0x4;
    internal const uint IN_DELETE_SELF = 0x400;
    internal const uint IN_MOVE_SELF = 0x800;
    internal const uint IN_Q_OVERFLOW = 0x4000;
    internal const uint IN_IGNORED = 0x8000;
    internal const uint IN_ONESHOT = 0x80000000;

    /// <summary>struct inotify_event, without the name that can follow.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct WatchEvent
    {
        internal int Watch;
        internal uint Mask;
        internal uint Cookie;
        internal uint NameLength;
    }

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "inotify_init1", SetLastError = true)]
    internal static partial int InotifyInit(int flags);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "inotify_add_watch", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    internal static partial int InotifyAddWatch(SafeFileHandle inotify, string path, uint mask);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "inotify_rm_watch", SetLastError = true)]
    internal static partial int InotifyRemoveWatch(SafeFileHandle inotify, int watch);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "read", SetLastError = true)]
    internal static partial nint Read(SafeFileHandle file, byte* buffer, nuint count);
}
