using System.Runtime.InteropServices;
using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Interop;

namespace Pipelines.File.Backends;

/// <summary>Opens files and chooses the back end for them: the one place that knows which systems have which.</summary>
internal static class FileBackends
{
    // The switch of the runtime that turns file locks off, by AppContext or environment.
    private static readonly bool s_isLockingDisabled =
        (AppContext.TryGetSwitch("System.IO.DisableFileLocking", out bool isDisabled) && isDisabled)
        || Environment.GetEnvironmentVariable("DOTNET_SYSTEM_IO_DISABLEFILELOCKING") is "1" or "true";

    // Its system calls are declared for 64-bit processes.
    internal static bool HasThreadPoolBackend => !OperatingSystem.IsWindows() && Environment.Is64BitProcess;

    /// <summary>Opens a file by path, with the exceptions of <see cref="FileStream"/>.</summary>
    internal static FileBackend Open(FilePipeBackend requested, string path, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        ThrowIfNotSupported(requested);
        string fullPath = Path.GetFullPath(path);
        bool isNew = mode == FileMode.CreateNew || (mode is FileMode.Create or FileMode.OpenOrCreate or FileMode.Append && !Path.Exists(fullPath));
        if (OperatingSystem.IsWindows())
        {
            OverlappedFile.ThrowIfUnbuffered(options);
            if (OverlappedFile.IsFor(requested, fullPath, share)
                && TryOpenOverlapped(requested, fullPath, mode, access, share, options, preallocationSize) is { } overlapped)
            {
                overlapped.IsNew = isNew;
                return overlapped;
            }

            // Where the choice is the library's, what is not overlapped is synchronous, whatever the hint says.
            options = requested == FilePipeBackend.Auto ? options & ~FileOptions.Asynchronous : options;
        }

        SafeFileHandle handle = TryOpenLinux(fullPath, mode, access, share, options)
            ?? TryOpenForAppendingLinux(fullPath, mode, share, options, preallocationSize)
            ?? (isNew ? TryMakeNewLinux(fullPath, mode, access, share, options, preallocationSize) : null)
            ?? System.IO.File.OpenHandle(fullPath, mode, access, share, options, preallocationSize);
        try
        {
            FileBackend backend = Choose(requested, handle, fullPath, appends: mode == FileMode.Append && TryAppend(handle));
            backend.IsNew = isNew;
            return backend;
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    /// <summary>Standard input or output, which stays open.</summary>
    /// <exception cref="IOException">The process has none.</exception>
    internal static FileBackend OpenStandard(FilePipeBackend requested, bool isOutput)
    {
        nint handle = OperatingSystem.IsWindows() ? Kernel32.GetStdHandle(isOutput ? Kernel32.STD_OUTPUT_HANDLE : Kernel32.STD_INPUT_HANDLE) : isOutput ? 1 : 0;
        if (OperatingSystem.IsWindows() && handle is 0 or -1)
        {
            throw new IOException($"This process has no standard {(isOutput ? "output" : "input")}.");
        }

        return Attach(requested, new SafeFileHandle(handle, ownsHandle: false), sharesPosition: true);
    }

    /// <summary>Takes one side of a FIFO that <see cref="Waiting.FifoOpening"/> has opened by its path; closes it where this throws.</summary>
    internal static FileBackend OpenFifo(FilePipeBackend requested, SafeFileHandle handle, string fullPath)
    {
        try
        {
            return Choose(requested, handle, fullPath);
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    /// <summary>Locks a file that was opened without the runtime, as it does: exclusively where others may do nothing with it, else shared (flock(2)).</summary>
    /// <exception cref="IOException">Somebody else has it locked. The file stays open.</exception>
    internal static void Lock(SafeFileHandle handle, string fullPath, FileShare share)
    {
        int operation = share == FileShare.None ? Libc.LOCK_EX : Libc.LOCK_SH;
        if (!s_isLockingDisabled && Libc.FLock((int)handle.DangerousGetHandle(), operation | Libc.LOCK_NB) != 0 && Marshal.GetLastPInvokeError() == Libc.EAGAIN)
        {
            throw new IOException($"The process cannot access the file '{fullPath}' because it is being used by another process.", Libc.EAGAIN);
        }
    }

    /// <summary>Takes back the shared lock that opening has put on a file, which then stands in nobody's way any more (flock(2)).</summary>
    internal static void Unlock(SafeFileHandle handle)
    {
        if (!s_isLockingDisabled)
        {
            _ = Libc.FLock((int)handle.DangerousGetHandle(), Libc.LOCK_UN);
        }
    }

    /// <summary>Takes a handle of the caller's.</summary>
    internal static FileBackend Attach(FilePipeBackend requested, SafeFileHandle handle, bool sharesPosition = false)
    {
        ArgumentNullException.ThrowIfNull(handle);
        ThrowIfNotSupported(requested);
        ObjectDisposedException.ThrowIf(handle.IsClosed, handle);
        if (handle.IsInvalid)
        {
            throw new ArgumentException("The handle is invalid.", nameof(handle));
        }

        if (OperatingSystem.IsWindows() && WindowsCalls.Default.IsUnbuffered(handle))
        {
            throw OverlappedFile.UnbufferedException();
        }

        if (requested != FilePipeBackend.Overlapped)
        {
            // A handle is bound to a completion port once and for ever, and the runtime may have bound this one, or may want to: the runtime's way, then.
            return Choose(requested, handle, path: null, appends: IsAppending(handle), sharesPosition);
        }

        return OperatingSystem.IsWindows() && handle.IsAsync
            ? new OverlappedBackend(handle, path: null, FileProperties.Of(handle, path: null))
            : throw new ArgumentException($"The handle is not open for overlapped I/O, which {nameof(FilePipeBackend)}.{nameof(FilePipeBackend.Overlapped)} needs.", nameof(handle));
    }

    /// <summary><see langword="null"/>: a device that has no overlapped I/O, or does not tell what it is, and that may be opened a second time, without it.</summary>
    [SupportedOSPlatform("windows")]
    private static OverlappedBackend? TryOpenOverlapped(
        FilePipeBackend requested, string fullPath, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize)
    {
        SafeFileHandle handle = OverlappedFile.Open(fullPath, mode, access, share, options, preallocationSize);
        try
        {
            return new OverlappedBackend(handle, fullPath, FileProperties.Of(handle, fullPath)) { Appends = mode == FileMode.Append };
        }
        catch (Exception e) when (e is ArgumentException or IOException && requested == FilePipeBackend.Auto && mode == FileMode.Open && (options & FileOptions.DeleteOnClose) == 0)
        {
            handle.Dispose();
            return null;
        }
        catch (ArgumentException e)
        {
            handle.Dispose();
            throw new IOException($"The system has no overlapped I/O for '{fullPath}'.", e);
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    /// <summary>The back end for an open file on this system, other than overlapped I/O.</summary>
    internal static FileBackend Choose(FilePipeBackend requested, SafeFileHandle handle, string? path, bool appends = false, bool sharesPosition = false, UnixCalls? calls = null)
    {
        FileProperties properties = FileProperties.Of(handle, path);
        if (OperatingSystem.IsWindows() && !properties.CanSeek && !handle.IsAsync)
        {
            return new SynchronousBackend(handle, path, properties) { SharesPosition = sharesPosition };
        }

        return HasThreadPoolBackend && requested != FilePipeBackend.Portable
            ? new ThreadPoolBackend(handle, path, properties, calls) { Appends = appends, SharesPosition = sharesPosition }
            : new PortableBackend(handle, path, properties) { Appends = appends, SharesPosition = sharesPosition };
    }

    // fcntl(2), O_APPEND. Linux only: elsewhere its variable argument is passed another way.

    private static bool IsAppending(SafeFileHandle handle)
        => OperatingSystem.IsLinux() && Environment.Is64BitProcess && Libc.FCntl(handle, Libc.F_GETFL, 0) is int flags and >= 0 && (flags & Libc.O_APPENDLinux) != 0;

    /// <summary>Has every write of a file that this process has opened for itself go to its end.</summary>
    private static bool TryAppend(SafeFileHandle handle)
        => OperatingSystem.IsLinux() && Environment.Is64BitProcess
            && Libc.FCntl(handle, Libc.F_GETFL, 0) is int flags and >= 0
            && Libc.FCntl(handle, Libc.F_SETFL, flags | Libc.O_APPENDLinux) >= 0;

    /// <summary>
    /// Opens or makes a file for appending: the runtime opens it without O_APPEND, which a file that may only grow (chattr(1), +a) refuses. <see langword="null"/> as for
    /// <see cref="TryOpenLinux"/>.
    /// </summary>
    private static SafeFileHandle? TryOpenForAppendingLinux(string fullPath, FileMode mode, FileShare share, FileOptions options, long preallocationSize)
        => OperatingSystem.IsLinux() && Environment.Is64BitProcess && mode == FileMode.Append && preallocationSize == 0 && IsPlain(share, options)
            ? TryLock(Libc.Open(fullPath, Libc.O_WRONLY | Libc.O_CREATLinux | Libc.O_APPENDLinux | Libc.O_CLOEXECLinux, Libc.NewFileMode), share)
            : null;

    /// <summary>
    /// For <see cref="FileMode.Create"/> where there is no such file. The runtime truncates also the one that it has just made, and ext4 then takes its bytes for the replacement of
    /// others: it allocates them and begins to write them to the device in close(2), a quarter of the time of a 100 MiB file (ext4(5), auto_da_alloc). <see langword="null"/>:
    /// there is a file, or anything else stands in the way: File.OpenHandle decides, and throws the documented exceptions.
    /// </summary>
    private static SafeFileHandle? TryMakeNewLinux(string fullPath, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize)
    {
        if (!OperatingSystem.IsLinux() || mode != FileMode.Create)
        {
            return null;
        }

        try
        {
            return System.IO.File.OpenHandle(fullPath, FileMode.CreateNew, access, share, options, preallocationSize);
        }
        catch (IOException)
        {
            return null;
        }
    }

    /// <summary>
    /// Opens an existing file for reading with the two calls that this needs where the runtime makes three, and two more on closing; <see langword="null"/> wherever
    /// anything is not plain, or fails: File.OpenHandle decides then, and throws the documented exceptions.
    /// </summary>
    private static SafeFileHandle? TryOpenLinux(string fullPath, FileMode mode, FileAccess access, FileShare share, FileOptions options)
        => OperatingSystem.IsLinux() && mode == FileMode.Open && access == FileAccess.Read && IsPlain(share, options)
            ? TryLock(Libc.Open(fullPath, Libc.O_RDONLY | Libc.O_CLOEXECLinux), share)
            : null;

    private static bool IsPlain(FileShare share, FileOptions options)
        => (share & ~(FileShare.ReadWrite | FileShare.Delete)) == 0 && (options & ~FileOptions.Asynchronous) == 0 && !s_isLockingDisabled;

    /// <summary>The runtime's own rule: a file is locked exclusively if others may do nothing with it, else shared, whatever they may do (flock(2)).</summary>
    private static SafeFileHandle? TryLock(int descriptor, FileShare share)
    {
        if (descriptor < 0)
        {
            return null;
        }

        SafeFileHandle handle = new(descriptor, ownsHandle: true);
        if (Libc.FLock(descriptor, (share == FileShare.None ? Libc.LOCK_EX : Libc.LOCK_SH) | Libc.LOCK_NB) != 0)
        {
            handle.Dispose();
            return null;
        }

        return handle;
    }

    /// <summary>Refuses a back end that this system lacks.</summary>
    /// <exception cref="PlatformNotSupportedException">This system lacks that back end.</exception>
    internal static void ThrowIfNotSupported(FilePipeBackend requested)
    {
        switch (requested)
        {
            case FilePipeBackend.Auto:
            case FilePipeBackend.Portable:
            case FilePipeBackend.ThreadPool when HasThreadPoolBackend:
            case FilePipeBackend.Overlapped when OperatingSystem.IsWindows():
                return;
            case FilePipeBackend.ThreadPool:
            case FilePipeBackend.Overlapped:
                throw new PlatformNotSupportedException($"This system has no {nameof(FilePipeBackend)}.{requested} back end.");
            default:
                throw new ArgumentOutOfRangeException(nameof(requested), requested, "Not a FilePipeBackend.");
        }
    }
}
