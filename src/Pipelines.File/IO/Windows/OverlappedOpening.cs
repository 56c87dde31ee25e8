using System.Security.AccessControl;

namespace Pipelines.File.IO;

/// <summary>Opens files on Windows.</summary>
internal static class OverlappedOpening
{
    /// <summary>Paths from this length on need the \\?\ prefix (MAX_PATH).</summary>
    private const int MaxShortPath = 260;

    /// <summary>
    /// Whether a file that is opened by path is opened for overlapped I/O. Where the choice is the library's it is not a device by itself
    /// (\\.\PhysicalDrive0, \\.\C:, CON): many have no overlapped I/O, and only the runtime, which knows the path, tells their length. And
    /// it is not inheritable: a child process makes ordinary calls, which an overlapped handle answers before the bytes have moved.
    /// </summary>
    internal static bool IsFor(in FileToOpen file)
        => file.Backend == FilePipeBackend.Overlapped
            || (file.Backend == FilePipeBackend.Auto && (file.Share & FileShare.Inheritable) == 0 && !IsDevice(file.Path));

    /// <summary>Whether the path is that of a device rather than of a file on one, or of a pipe: \\.\NAME or \\?\NAME.</summary>
    internal static bool IsDevice(string fullPath)
        => (fullPath.StartsWith(@"\\.\", StringComparison.Ordinal) || fullPath.StartsWith(@"\\?\", StringComparison.Ordinal))
            && fullPath.AsSpan(@"\\.\".Length).IndexOfAny('\\', '/') < 0;

    /// <exception cref="NotSupportedException">
    /// The file would be opened without the system's cache, so that every offset, length and address had to be a multiple of its sector.
    /// </exception>
    internal static void ThrowIfUnbuffered(bool isUnbuffered)
    {
        if (isUnbuffered)
        {
            throw new NotSupportedException("A file that is open with FILE_FLAG_NO_BUFFERING (FileOptions 0x20000000) cannot be read or "
                + "written here: its reads and writes have to be of whole sectors. Open it without.");
        }
    }

    /// <summary>
    /// Opens or makes a file that every write is appended to, without FILE_FLAG_OVERLAPPED: a handle without the right to write elsewhere
    /// (File Access Rights Constants).
    /// </summary>
    [SupportedOSPlatform("windows")]
    internal static SafeFileHandle OpenForAppending(string fullPath, FileShare share, FileOptions options)
        => new FileInfo(fullPath).Create(
            FileMode.OpenOrCreate, FileSystemRights.AppendData | FileSystemRights.Synchronize, share, bufferSize: 1,
                options & ~FileOptions.Asynchronous, fileSecurity: null).SafeFileHandle;

    /// <summary>The path with the prefix that a long one needs, and one whose last character Windows would take away.</summary>
    internal static string Extended(string fullPath)
    {
        if ((fullPath.Length < MaxShortPath && fullPath[^1] is not (' ' or '.')) || fullPath.StartsWith(@"\\?\", StringComparison.Ordinal)
            || fullPath.StartsWith(@"\\.\", StringComparison.Ordinal) || fullPath.StartsWith(@"\??\", StringComparison.Ordinal))
        {
            return fullPath;
        }

        return fullPath.StartsWith(@"\\", StringComparison.Ordinal) ? string.Concat(@"\\?\UNC\", fullPath.AsSpan(2)) : @"\\?\" + fullPath;
    }
}
