namespace Pipelines.File.AspNetCore;

/// <summary>A file system, or the quota of a user, that has no room left.</summary>
internal static class FullDisk
{
    // errno(3): ENOSPC; EDQUOT of Linux and of macOS.
    private const int ENOSPC = 28;
    private const int LinuxEDQUOT = 122;
    private const int MacEDQUOT = 69;

    // Win32: ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL, ERROR_DISK_QUOTA_EXCEEDED.
    internal static bool IsReasonOf(IOException e)
        => OperatingSystem.IsWindows() ? (e.HResult & 0xFFFF) is 39 or 112 or 1295
            : e.HResult == ENOSPC || e.HResult == (OperatingSystem.IsMacOS() ? MacEDQUOT : LinuxEDQUOT);
}
