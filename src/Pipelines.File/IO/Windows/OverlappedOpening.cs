using System.Security.AccessControl;

namespace Pipelines.File.IO;

/// <summary>How files are opened on Windows.</summary>
internal static class OverlappedOpening
{
    /// <summary>Paths of at least this length, characters, need the \\?\ prefix (MAX_PATH).</summary>
    private const int MaxShortPath = 260;

    [SupportedOSPlatform("windows")]
    internal static OpenedFile Open(in FileToOpen file)
    {
        ThrowIfUnbuffered((file.Options & Option.NoBuffering) != 0);
        bool isOverlapped = IsFor(file);

        // With Auto, a handle that is not overlapped is opened synchronously, even if the caller's options contain Asynchronous. The
        // runtime cannot open a file so that the system appends.
        bool appends = file.Mode == FileMode.Append && !IsDevice(file.Path);
        FileToOpen chosen = isOverlapped
            ? file with { Options = file.Options | FileOptions.Asynchronous }
            : file.Backend == FilePipeBackend.Auto ? file with { Options = file.Options & ~FileOptions.Asynchronous }
            : file;
        SafeFileHandle handle = appends && !isOverlapped ? OpenForAppending(file.Path, file.Share, file.Options)
            : chosen.OpenHandle();
        return FileOpening.ChooseOrClose(chosen, handle, appends);
    }

    /// <summary>
    /// Whether a file that is opened by path is opened for overlapped I/O. With Auto this is not so for a device (\\.\PhysicalDrive0,
    /// \\.\C:, CON): many have no overlapped I/O, and only the runtime, which knows the path, gets their length. And it is not so for an
    /// inheritable handle: a child process makes ordinary calls, which return on an overlapped handle before the bytes are transferred.
    /// </summary>
    internal static bool IsFor(in FileToOpen file)
        => file.Backend == FilePipeBackend.Overlapped
            || (file.Backend == FilePipeBackend.Auto && (file.Share & FileShare.Inheritable) == 0 && !IsDevice(file.Path));

    /// <summary>Whether the path is a device's, and not that of a file on one or of a pipe: \\.\NAME or \\?\NAME.</summary>
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
    /// Opens or creates a file for appending, without FILE_FLAG_OVERLAPPED: the handle has no right to write elsewhere (File Access Rights
    /// Constants).
    /// </summary>
    [SupportedOSPlatform("windows")]
    internal static SafeFileHandle OpenForAppending(string fullPath, FileShare share, FileOptions options)
        => new FileInfo(fullPath).Create(
            FileMode.OpenOrCreate, FileSystemRights.AppendData | FileSystemRights.Synchronize, share, bufferSize: 1,
                options & ~FileOptions.Asynchronous, fileSecurity: null).SafeFileHandle;

    /// <summary>Returns the path with the \\?\ prefix if it is long, or if Windows would remove its last character.</summary>
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
