namespace Pipelines.File.IO;

/// <summary>Opens files and chooses the back end for them: the one place that knows which systems have which.</summary>
internal static class FileOpening
{
    // The switch of the runtime that turns file locks off, by AppContext or environment.
    private static readonly bool s_isLockingDisabled =
        (AppContext.TryGetSwitch("System.IO.DisableFileLocking", out bool isDisabled) && isDisabled)
        || Environment.GetEnvironmentVariable("DOTNET_SYSTEM_IO_DISABLEFILELOCKING") is "1" or "true";

    // The system calls are declared for 64-bit processes.
    internal static bool IsLinux => OperatingSystem.IsLinux() && Environment.Is64BitProcess;

    /// <summary>Opens a file by path, with the exceptions of <see cref="FileStream"/>.</summary>
    /// <exception cref="FileExistsException">There is a file of that name, and the mode is <see cref="FileMode.CreateNew"/>.</exception>
    internal static OpenedFile Open(
        FilePipeBackend requested, string path, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize, UnixFileMode? createMode = null)
    {
        try
        {
            return OpenOnce(requested, path, mode, access, share, options, preallocationSize, createMode);
        }
        catch (IOException e) when (SpareDescriptors.AreShort(e) && SpareDescriptors.TryRelease())
        {
            return OpenOnce(requested, path, mode, access, share, options, preallocationSize, createMode);
        }
    }

    private static OpenedFile OpenOnce(
        FilePipeBackend requested, string path, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize, UnixFileMode? createMode)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        ThrowIfNotSupported(requested);
        if (mode == FileMode.Append && !OperatingSystem.IsWindows() && !IsLinux)
        {
            throw new PlatformNotSupportedException($"{nameof(FileMode)}.{nameof(FileMode.Append)} is not supported here, because .NET cannot let the system put every write at the end of the file.");
        }

        string fullPath = Path.GetFullPath(path);
        if (IsLinux
            && LinuxOpening.TryOpen(fullPath, mode, access, share, options, preallocationSize, createMode, out FileProperties properties, out bool isNew)
                is { } handle)
        {
            OpenedFile own = ChooseOrClose(requested, handle, fullPath, properties, appends: mode == FileMode.Append);
            own.IsNew = isNew;
            return own;
        }

        FileStatus before = default;
        bool makes = MayMake(mode);
        bool isMissing = mode == FileMode.CreateNew || (makes && FileStatus.OfName(fullPath, out before) == NameMeaning.Nothing);
        try
        {
            OpenedFile opened = OperatingSystem.IsWindows()
                ? OpenWindows(requested, fullPath, mode, access, share, options, preallocationSize)
                : OpenUnix(requested, fullPath, mode, access, share, options, preallocationSize, createMode);

            // Somebody may have made or removed a file of that name in between: only the file that was there before is not new.
            opened.IsNew = isMissing || (makes && opened.Identity != before.Identity);
            return opened;
        }
        catch (IOException e) when (mode == FileMode.CreateNew && FileExistsException.Says(e))
        {
            throw FileExistsException.At(path, e);
        }
    }

    /// <summary>Whether the mode makes a file where there is none, and takes the one that there is.</summary>
    internal static bool MayMake(FileMode mode) => mode is FileMode.Create or FileMode.OpenOrCreate or FileMode.Append;

    /// <summary>Standard input or output, which stays open.</summary>
    /// <exception cref="IOException">The process has none.</exception>
    /// <exception cref="UnauthorizedAccessException">It is open the other way only.</exception>
    internal static OpenedFile OpenStandard(FilePipeBackend requested, bool isOutput)
    {
        nint number = OperatingSystem.IsWindows() ? Kernel32.GetStdHandle(isOutput ? Kernel32.STD_OUTPUT_HANDLE : Kernel32.STD_INPUT_HANDLE) : isOutput ? 1 : 0;
        SafeFileHandle handle = new(number, ownsHandle: false);

        // A number that whoever started this process has closed (<&-) is given to the next file that this process opens. That one is closed
        // on exec, and none that exec has left open is.
        if (OperatingSystem.IsWindows() ? number is 0 or -1 : IsLinux && Libc.FCntl(handle, Libc.F_GETFD, 0) is < 0 or Libc.FD_CLOEXEC)
        {
            throw new IOException($"This process has no standard {(isOutput ? "output" : "input")}.");
        }

        return Attach(requested, handle, isOutput ? FileAccess.Write : FileAccess.Read, sharesPosition: true);
    }

    /// <summary>Takes one side of a FIFO that <see cref="FifoOpening"/> has opened by its path; closes it where this throws.</summary>
    internal static OpenedFile OpenFifo(FilePipeBackend requested, SafeFileHandle handle, string fullPath)
    {
        try
        {
            if (requested == FilePipeBackend.Portable)
            {
                // The runtime's calls wait.
                _ = Libc.ChangeFlags(handle, cleared: Libc.O_NONBLOCK);
            }

            return Choose(requested, handle, fullPath);
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Locks a file that was opened without the runtime, as it does: exclusively where others may do nothing with it, else shared
    /// (flock(2)).
    /// </summary>
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

    /// <summary>
    /// Refuses what has no direct I/O before it is opened, which may make or empty it: as far as the back end tells, and the name. Where
    /// there is no such file, or it cannot be read, whoever opens it finds out.
    /// </summary>
    /// <param name="requested">The back end that is asked for.</param>
    /// <param name="path">What is opened.</param>
    /// <param name="share">What others may do with it.</param>
    /// <param name="isEmptied">Whether opening empties it.</param>
    /// <exception cref="PlatformNotSupportedException">This library has none for the system or the back end.</exception>
    /// <exception cref="NotSupportedException">The file system has none.</exception>
    internal static void ThrowIfNotDirect(FilePipeBackend requested, string path, FileShare share, bool isEmptied)
    {
        ThrowIfNotSupported(requested);
        bool isHere = IsLinux ? requested != FilePipeBackend.Portable : OperatingSystem.IsWindows() && OverlappedOpening.IsFor(requested, Path.GetFullPath(path), share);
        if (!isHere)
        {
            throw DirectFile.NotHere(requested, path);
        }

        if (!IsLinux || !isEmptied || FifoOpening.TypeOf(path) != Libc.S_IFREG)
        {
            return;
        }

        int descriptor = Libc.Open(path, Libc.O_RDONLY | Libc.O_CLOEXEC | Libc.O_NONBLOCK | Libc.O_DIRECT);
        if (descriptor >= 0)
        {
            _ = Libc.Close(descriptor);
        }
        else if (Marshal.GetLastPInvokeError() == Libc.EINVAL)
        {
            throw DirectFile.NotSupported(path);
        }
    }

    /// <summary>
    /// What others may do with a file that is opened by path: on Windows <see cref="FileCaching.Direct"/> opens it a second time, for the
    /// same access, which each of the two handles has to allow everybody.
    /// </summary>
    internal static FileShare ShareFor(FileCaching caching, FileShare share, FileAccess access)
        => caching == FileCaching.Direct && OperatingSystem.IsWindows() ? share | (FileShare)access : share;

    /// <summary>The open file as its bytes are to be cached. What goes past the page cache is a file around it.</summary>
    /// <inheritdoc cref="DirectFile.Of" path="/param|/exception"/>
    internal static OpenedFile WithCaching(OpenedFile file, FileCaching caching, bool isWriter, bool isOwn, int inFlight, long mostLength = long.MaxValue)
    {
        if (caching == FileCaching.DropBehind)
        {
            file.DropBehind(isWriter);
        }

        return caching == FileCaching.Direct ? DirectFile.Of(file, isWriter, isOwn, inFlight, mostLength) : DirectFile.OfDirectHandle(file, isWriter);
    }

    /// <summary>Takes a handle of the caller's.</summary>
    /// <exception cref="UnauthorizedAccessException">The handle is not open for that access.</exception>
    internal static OpenedFile Attach(FilePipeBackend requested, SafeFileHandle handle, FileAccess access, bool sharesPosition = false)
    {
        ArgumentNullException.ThrowIfNull(handle);
        ThrowIfNotSupported(requested);
        ObjectDisposedException.ThrowIf(handle.IsClosed, handle);
        if (handle.IsInvalid)
        {
            throw new ArgumentException("The handle is invalid.", nameof(handle));
        }

        RequireAccess(handle, access);
        if (OperatingSystem.IsWindows() && WindowsCalls.IsUnbuffered(handle))
        {
            throw OverlappedOpening.UnbufferedException();
        }

        if (requested == FilePipeBackend.Overlapped && !handle.IsAsync)
        {
            throw new ArgumentException($"The handle is not open for overlapped I/O, which {nameof(FilePipeBackend)}.{nameof(FilePipeBackend.Overlapped)} needs.", nameof(handle));
        }

        return Choose(requested, handle, path: null, appends: IsAppending(handle), sharesPosition);
    }

    /// <summary>The back end for an open file on this system; on Windows overlapped I/O only where that is asked for.</summary>
    internal static OpenedFile Choose(FilePipeBackend requested, SafeFileHandle handle, string? path, bool appends = false, bool sharesPosition = false, UnixCalls? calls = null)
        => Choose(requested, handle, path, FileProperties.Of(handle, path), appends, sharesPosition, calls);

    private static OpenedFile Choose(
        FilePipeBackend requested, SafeFileHandle handle, string? path, in FileProperties properties, bool appends, bool sharesPosition = false, UnixCalls? calls = null)
    {
        return requested != FilePipeBackend.Portable && IsLinux ? new UnixFile(handle, path, properties, calls) { Appends = appends, SharesPosition = sharesPosition }
            : requested == FilePipeBackend.Overlapped && OperatingSystem.IsWindows() ? new OverlappedFile(handle, path, properties) { Appends = appends, SharesPosition = sharesPosition }
            : properties.CanSeek ? new PortableFile(handle, path, properties) { Appends = appends, SharesPosition = sharesPosition }
            : new SequentialFile(handle, path, properties) { Appends = appends, SharesPosition = sharesPosition };
    }

    [SupportedOSPlatform("windows")]
    private static OpenedFile OpenWindows(
        FilePipeBackend requested, string fullPath, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize)
    {
        OverlappedOpening.ThrowIfUnbuffered(options);
        bool isOverlapped = OverlappedOpening.IsFor(requested, fullPath, share);

        // Where the choice is the library's, what is not overlapped is synchronous, whatever the hint says. The runtime opens no file so
        // that the system appends.
        bool appends = mode == FileMode.Append && !OverlappedOpening.IsDevice(fullPath);
        SafeFileHandle handle = isOverlapped ? OverlappedOpening.Open(fullPath, mode, access, share, options, preallocationSize)
            : appends ? OverlappedOpening.OpenForAppending(fullPath, share, options)
            : System.IO.File.OpenHandle(fullPath, mode, access, share, requested == FilePipeBackend.Auto ? options & ~FileOptions.Asynchronous : options, preallocationSize);
        return ChooseOrClose(isOverlapped ? FilePipeBackend.Overlapped : requested, handle, fullPath, properties: null, appends);
    }

    /// <summary>As the runtime does.</summary>
    [UnsupportedOSPlatform("windows")]
    private static OpenedFile OpenUnix(
        FilePipeBackend requested, string fullPath, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize, UnixFileMode? createMode)
    {
        SafeFileHandle handle = createMode is { } permissions
            ? OpenWithMode(fullPath, mode, access, share, options, preallocationSize, permissions)
            : System.IO.File.OpenHandle(fullPath, mode, access, share, options, preallocationSize);
        return ChooseOrClose(requested, handle, fullPath, properties: null, appends: mode == FileMode.Append && Libc.ChangeFlags(handle, set: Libc.O_APPEND) >= 0);
    }

    /// <summary>Opens or makes a file with permissions of the caller's, as only a stream of the runtime's can.</summary>
    [UnsupportedOSPlatform("windows")]
    private static SafeFileHandle OpenWithMode(
        string fullPath, FileMode mode, FileAccess access, FileShare share, FileOptions options, long preallocationSize, UnixFileMode createMode)
    {
        FileStreamOptions stream = new()
        {
            Mode = mode,
            Access = access,
            Share = share,
            Options = options,
            PreallocationSize = preallocationSize,
            BufferSize = 0,
            UnixCreateMode = createMode,
        };

        // Not disposed of: its handle is taken, and it has no buffer.
        return new FileStream(fullPath, stream).SafeFileHandle;
    }

    private static OpenedFile ChooseOrClose(FilePipeBackend requested, SafeFileHandle handle, string fullPath, FileProperties? properties, bool appends)
    {
        try
        {
            return Choose(requested, handle, fullPath, properties ?? FileProperties.Of(handle, fullPath), appends);
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    // What follows is fcntl(2), Linux only: elsewhere its variable argument is passed another way.

    private static void RequireAccess(SafeFileHandle handle, FileAccess access)
    {
        if (IsLinux && Libc.TryGetFlags(handle, out int flags)
            && (flags & Libc.O_ACCMODE) == (access == FileAccess.Read ? Libc.O_WRONLY : Libc.O_RDONLY))
        {
            (string missing, string given) = access == FileAccess.Read ? ("reading", "writing") : ("writing", "reading");
            throw new UnauthorizedAccessException($"The handle is not open for {missing}, but for {given} only: '{FileProperties.PathOf(handle)}'");
        }
    }

    private static bool IsAppending(SafeFileHandle handle)
        => IsLinux && Libc.TryGetFlags(handle, out int flags) && (flags & Libc.O_APPEND) != 0;

    /// <summary>Refuses a back end that this system lacks.</summary>
    /// <exception cref="PlatformNotSupportedException">This system lacks that back end.</exception>
    internal static void ThrowIfNotSupported(FilePipeBackend requested)
    {
        switch (requested)
        {
            case FilePipeBackend.Auto:
            case FilePipeBackend.Portable:
            case FilePipeBackend.ThreadPool when IsLinux:
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
