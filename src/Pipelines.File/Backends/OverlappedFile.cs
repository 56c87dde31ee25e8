using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Interop;

namespace Pipelines.File.Backends;

/// <summary>
/// Opens a file on Windows as <see cref="System.IO.File.OpenHandle"/> does, down to its flags and exceptions, but does not bind it: a handle is bound to
/// a completion port once and for ever, and the runtime keeps its own binding to itself.
/// </summary>
internal static unsafe class OverlappedFile
{
    /// <summary>Paths from this length on need the \\?\ prefix (MAX_PATH).</summary>
    private const int MaxShortPath = 260;

    /// <summary>FILE_FLAG_NO_BUFFERING, which <see cref="FileOptions"/> has no name for and <see cref="FileStream"/> lets through.</summary>
    private const FileOptions NoBuffering = (FileOptions)0x20000000;

    private const FileOptions AllOptions = FileOptions.WriteThrough | FileOptions.Asynchronous | FileOptions.RandomAccess | FileOptions.DeleteOnClose
        | FileOptions.SequentialScan | FileOptions.Encrypted | NoBuffering;

    /// <summary>CreateFileW with FILE_FLAG_OVERLAPPED.</summary>
    internal static SafeFileHandle Open(string fullPath, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize)
        => Open(fullPath, mode, access, share, options, preallocationSize, moreRights: 0, isOverlapped: true);

    /// <summary>Makes a file that others may read, and that can be renamed while it is open.</summary>
    /// <param name="temporaryPath">Its name for now.</param>
    /// <param name="isOverlapped">With FILE_FLAG_OVERLAPPED.</param>
    /// <param name="options">As for <see cref="Open(string, FileMode, FileAccess, FileShare, FileOptions, long)"/>.</param>
    /// <param name="preallocationSize">Likewise, bytes.</param>
    internal static SafeFileHandle OpenRenamable(string temporaryPath, bool isOverlapped, FileOptions options, long preallocationSize)
        => Open(temporaryPath, FileMode.CreateNew, FileAccess.Write, FileShare.Read | FileShare.Delete, options, preallocationSize, Kernel32.DELETE, isOverlapped);

    private static SafeFileHandle Open(
        string fullPath, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize, uint moreRights, bool isOverlapped)
    {
        if ((share & ~(FileShare.ReadWrite | FileShare.Delete | FileShare.Inheritable)) != 0)
        {
            throw new ArgumentOutOfRangeException(nameof(share), share, "Not a FileShare.");
        }

        if ((options & ~AllOptions) != 0)
        {
            throw new ArgumentOutOfRangeException(nameof(options), options, "Not FileOptions.");
        }

        if (preallocationSize > 0 && mode is not (FileMode.Create or FileMode.CreateNew))
        {
            throw new ArgumentException($"A preallocation size goes only with {nameof(FileMode)}.{nameof(FileMode.Create)} and {nameof(FileMode.CreateNew)}.", nameof(preallocationSize));
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
                Preallocate(handle, fullPath, preallocationSize);
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

    private static void Preallocate(SafeFileHandle handle, string fullPath, long size)
    {
        if (Kernel32.SetFileInformationByHandle(handle, Kernel32.FileAllocationInfo, &size, sizeof(long)) != 0)
        {
            return;
        }

        // As in the runtime: only a lack of room counts, everything else is a file system that cannot preallocate.
        int error = Marshal.GetLastPInvokeError();
        if (error is Kernel32.ERROR_DISK_FULL or Kernel32.ERROR_FILE_TOO_LARGE)
        {
            handle.Dispose();
            System.IO.File.Delete(fullPath);
            throw FileErrors.FromWin32(error, fullPath);
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
