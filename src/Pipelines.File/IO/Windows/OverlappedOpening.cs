namespace Pipelines.File.IO;

/// <summary>
/// Opens a file on Windows as <see cref="System.IO.File.OpenHandle"/> does, down to its flags and exceptions, but does not bind it: a handle is bound to
/// a completion port once and for ever, and the runtime keeps its own binding to itself.
/// </summary>
internal static unsafe class OverlappedOpening
{
    /// <summary>Paths from this length on need the \\?\ prefix (MAX_PATH).</summary>
    private const int MaxShortPath = 260;

    private const int DevicePrefixLength = 4;

    /// <summary>FILE_FLAG_NO_BUFFERING, which <see cref="FileOptions"/> has no name for and <see cref="FileStream"/> lets through.</summary>
    private const FileOptions NoBuffering = (FileOptions)0x20000000;

    private const FileOptions AllOptions = FileOptions.WriteThrough | FileOptions.Asynchronous | FileOptions.RandomAccess | FileOptions.DeleteOnClose
        | FileOptions.SequentialScan | FileOptions.Encrypted | NoBuffering;

    /// <summary>Whether a file that is opened by path is opened for overlapped I/O.</summary>
    /// <param name="requested">What was asked for; the other parameters decide where that is <see cref="FilePipeBackend.Auto"/>.</param>
    /// <param name="fullPath">Not a device by itself (\\.\PhysicalDrive0, \\.\C:, CON): many have no overlapped I/O, and only the runtime, which knows the path, tells their length.</param>
    /// <param name="share">Not inheritable: a child process makes ordinary calls, which an overlapped handle answers before the bytes have moved.</param>
    internal static bool IsFor(FilePipeBackend requested, string fullPath, FileShare share)
        => requested == FilePipeBackend.Overlapped || (requested == FilePipeBackend.Auto && (share & FileShare.Inheritable) == 0 && !IsDevice(fullPath));

    /// <summary>Whether the path is that of a device rather than of a file on one, or of a pipe: \\.\NAME or \\?\NAME.</summary>
    internal static bool IsDevice(string fullPath)
        => (fullPath.StartsWith(@"\\.\", StringComparison.Ordinal) || fullPath.StartsWith(@"\\?\", StringComparison.Ordinal))
            && fullPath.AsSpan(DevicePrefixLength).IndexOfAny('\\', '/') < 0;

    /// <exception cref="NotSupportedException">The file would be opened without the system's cache, so that every offset, length and address had to be a multiple of its sector.</exception>
    internal static void ThrowIfUnbuffered(FileOptions options)
    {
        if ((options & NoBuffering) != 0)
        {
            throw UnbufferedException();
        }
    }

    internal static NotSupportedException UnbufferedException()
        => new("A file that is open with FILE_FLAG_NO_BUFFERING (FileOptions 0x20000000) cannot be read or written here: its reads and writes have to be of whole sectors. Open it without.");

    /// <summary>CreateFileW with FILE_FLAG_OVERLAPPED.</summary>
    internal static SafeFileHandle Open(string fullPath, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize, WindowsCalls? calls = null)
        => Open(fullPath, mode, access, share, options, preallocationSize, moreRights: 0, isOverlapped: true, calls);

    /// <summary>Opens or makes a file that every write is appended to, without FILE_FLAG_OVERLAPPED.</summary>
    internal static SafeFileHandle OpenForAppending(string fullPath, FileShare share, FileOptions options)
        => Open(fullPath, FileMode.Append, FileAccess.Write, share, options, preallocationSize: 0, moreRights: 0, isOverlapped: false, calls: null);

    /// <summary>Makes a file that can be renamed while it is open.</summary>
    /// <param name="temporaryPath">Its name for now.</param>
    /// <param name="share">What others may do with it meanwhile.</param>
    /// <param name="isOverlapped">With FILE_FLAG_OVERLAPPED.</param>
    /// <param name="options">As for <see cref="Open(string, FileMode, FileAccess, FileShare, FileOptions, long, WindowsCalls?)"/>.</param>
    /// <param name="preallocationSize">Likewise, bytes.</param>
    /// <param name="calls">Other calls than the system's, for tests.</param>
    internal static SafeFileHandle OpenRenamable(
        string temporaryPath, FileShare share, bool isOverlapped, FileOptions options, long preallocationSize, WindowsCalls? calls = null)
        => Open(temporaryPath, FileMode.CreateNew, FileAccess.Write, share, options, preallocationSize, Kernel32.DELETE, isOverlapped, calls);

    private static SafeFileHandle Open(
        string fullPath, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize, uint moreRights, bool isOverlapped, WindowsCalls? calls)
    {
        if ((share & ~(FileShare.ReadWrite | FileShare.Delete | FileShare.Inheritable)) != 0)
        {
            throw new ArgumentOutOfRangeException(nameof(share), share, "Not a FileShare.");
        }

        if ((options & ~AllOptions) != 0)
        {
            throw new ArgumentOutOfRangeException(nameof(options), options, "Not FileOptions.");
        }

        ThrowIfUnbuffered(options);

        if (preallocationSize > 0 && mode is not (FileMode.Create or FileMode.CreateNew))
        {
            throw new ArgumentException($"A preallocation size needs {nameof(FileMode)}.{nameof(FileMode.Create)} or {nameof(FileMode.CreateNew)}.", nameof(preallocationSize));
        }

        Kernel32.SecurityAttributes security = new()
        {
            Size = (uint)sizeof(Kernel32.SecurityAttributes),
            InheritHandle = (share & FileShare.Inheritable) != 0 ? 1 : 0,
        };
        uint rights = ((access & FileAccess.Read) != 0 ? Kernel32.GENERIC_READ : 0)
            | ((access & FileAccess.Write) == 0 ? 0 : mode == FileMode.Append ? Kernel32.AppendRights : Kernel32.GENERIC_WRITE)
            | moreRights;

        // Whoever waits at the other end of a named pipe must not act in our name, hence anonymous.
        uint flags = (uint)(options & ~FileOptions.Asynchronous) | (isOverlapped ? Kernel32.FILE_FLAG_OVERLAPPED : 0) | Kernel32.SECURITY_SQOS_PRESENT | Kernel32.SECURITY_ANONYMOUS;
        FileMode disposition = mode == FileMode.Append ? FileMode.OpenOrCreate : mode;

        // An empty drive is an error here, not a dialog box.
        uint errorMode;
        bool isErrorModeSet = Kernel32.SetThreadErrorMode(Kernel32.SEM_FAILCRITICALERRORS, &errorMode) != 0;
        try
        {
            SafeFileHandle handle = Kernel32.CreateFile(Extended(fullPath), rights, (uint)(share & ~FileShare.Inheritable), &security, (uint)disposition, flags, 0);
            if (handle.IsInvalid)
            {
                int error = Marshal.GetLastPInvokeError();
                handle.Dispose();

                // The root of a drive answers so where every other folder says that access is denied.
                bool isRoot = error == Kernel32.ERROR_PATH_NOT_FOUND && fullPath == Path.GetPathRoot(fullPath);
                throw FileErrors.FromWin32(isRoot ? Kernel32.ERROR_ACCESS_DENIED : error, fullPath);
            }

            if (preallocationSize > 0)
            {
                Preallocate(handle, fullPath, preallocationSize, calls ?? WindowsCalls.Default);
            }

            return handle;
        }
        finally
        {
            if (isErrorModeSet)
            {
                _ = Kernel32.SetThreadErrorMode(errorMode, null);
            }
        }
    }

    private static void Preallocate(SafeFileHandle handle, string fullPath, long size, WindowsCalls calls)
    {
        // As in the runtime, messages included: only a lack of room counts, everything else is a file system that cannot preallocate.
        int error = calls.Preallocate(handle, size);
        if (error is Kernel32.ERROR_DISK_FULL or Kernel32.ERROR_FILE_TOO_LARGE or Kernel32.ERROR_INVALID_PARAMETER)
        {
            handle.Dispose();
            System.IO.File.Delete(fullPath);
            string reason = error == Kernel32.ERROR_DISK_FULL ? "disk was full" : "file was too large";
            throw new IOException($"Failed to create '{fullPath}' with allocation size '{size}' because the {reason}.", FileErrors.HResultOf(error));
        }
    }

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
