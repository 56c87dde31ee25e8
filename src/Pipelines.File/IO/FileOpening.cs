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
    internal static OpenedFile Open(in FileToOpen file)
    {
        try
        {
            return OpenOnce(file);
        }
        catch (IOException e) when (SpareDescriptors.AreShort(e) && SpareDescriptors.TryRelease())
        {
            return OpenOnce(file);
        }
    }

    private static OpenedFile OpenOnce(in FileToOpen given)
    {
        ArgumentException.ThrowIfNullOrEmpty(given.Path, "path");
        ThrowIfNotSupported(given.Backend);
        if (given.Mode == FileMode.Append && !OperatingSystem.IsWindows() && !IsLinux)
        {
            throw new PlatformNotSupportedException($"{nameof(FileMode)}.{nameof(FileMode.Append)} is not supported here, "
                + "because .NET cannot let the system put every write at the end of the file.");
        }

        FileToOpen file = given.WithFullPath();
        if (IsLinux && LinuxOpening.TryOpen(file) is { } own)
        {
            return own;
        }

        FileStatus before = default;
        bool isMissing = file.Mode == FileMode.CreateNew
            || (file.MayMake && FileStatus.OfName(file.Path, out before) == NameMeaning.Nothing);
        try
        {
            OpenedFile opened = OperatingSystem.IsWindows() ? OpenWindows(file) : OpenUnix(file);

            // Somebody may have made or removed a file of that name in between: only the file that was there before is not new.
            opened.IsNew = isMissing || (file.MayMake && opened.Identity != before.Identity);
            return opened;
        }
        catch (IOException e) when (file.Mode == FileMode.CreateNew && FileExistsException.Says(e))
        {
            throw FileExistsException.At(given.Path, e);
        }
    }

    /// <summary>Standard input or output, which stays open.</summary>
    /// <exception cref="IOException">The process has none.</exception>
    /// <exception cref="UnauthorizedAccessException">It is open the other way only.</exception>
    internal static OpenedFile OpenStandard(FilePipeBackend requested, bool isOutput)
    {
        nint number = OperatingSystem.IsWindows()
            ? Kernel32.GetStdHandle(isOutput ? Kernel32.STD_OUTPUT_HANDLE : Kernel32.STD_INPUT_HANDLE) : isOutput ? 1 : 0;
        SafeFileHandle handle = new(number, ownsHandle: false);

        // A number that whoever started this process has closed (<&-) is given to the next file that this process opens. That one is closed
        // on exec, and none that exec has left open is.
        if (OperatingSystem.IsWindows() ? number is 0 or -1 : IsLinux && Libc.FCntl(handle, Libc.F_GETFD, 0) is < 0 or Libc.FD_CLOEXEC)
        {
            throw new IOException($"This process has no standard {(isOutput ? "output" : "input")}.");
        }

        return Attach(requested, handle, isOutput ? FileAccess.Write : FileAccess.Read, sharesPosition: true);
    }

    /// <summary>
    /// Locks a file that was opened without the runtime, as it does: exclusively where others may do nothing with it, else shared
    /// (flock(2)).
    /// </summary>
    /// <exception cref="IOException">Somebody else has it locked. The file stays open.</exception>
    internal static void Lock(SafeFileHandle handle, string fullPath, FileShare share)
    {
        int operation = share == FileShare.None ? Libc.LOCK_EX : Libc.LOCK_SH;
        if (!s_isLockingDisabled && Libc.FLock((int)handle.DangerousGetHandle(), operation | Libc.LOCK_NB) != 0
            && Marshal.GetLastPInvokeError() == Libc.EAGAIN)
        {
            throw new IOException($"The process cannot access the file '{fullPath}' because it is being used by another process.",
                Libc.EAGAIN);
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
    /// <exception cref="PlatformNotSupportedException">This library has none for the system or the back end.</exception>
    /// <exception cref="NotSupportedException">The file system has none.</exception>
    internal static void ThrowIfNotDirect(in FileToOpen file)
    {
        ThrowIfNotSupported(file.Backend);
        bool isHere = IsLinux ? file.Backend != FilePipeBackend.Portable
            : OperatingSystem.IsWindows() && OverlappedOpening.IsFor(file.WithFullPath());
        if (!isHere)
        {
            throw DirectFile.NotHere(file.Backend, file.Path);
        }

        if (!IsLinux || file.Mode is not (FileMode.Create or FileMode.Truncate) || FifoOpening.TypeOf(file.Path) != Libc.S_IFREG)
        {
            return;
        }

        int descriptor = Libc.Open(file.Path, Libc.O_RDONLY | Libc.O_CLOEXEC | Libc.O_NONBLOCK | Libc.O_DIRECT);
        if (descriptor >= 0)
        {
            _ = Libc.Close(descriptor);
        }
        else if (Marshal.GetLastPInvokeError() == Libc.EINVAL)
        {
            throw DirectFile.NotSupported(file.Path);
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
    internal static OpenedFile WithCaching(OpenedFile file, FileCaching caching, bool isWriter, bool isOwn, int inFlight,
        long mostLength = long.MaxValue)
    {
        if (caching == FileCaching.DropBehind)
        {
            file.DropBehind(isWriter);
        }

        return caching == FileCaching.Direct ? DirectFile.Of(file, isWriter, isOwn, inFlight, mostLength)
            : DirectFile.OfDirectHandle(file, isWriter);
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
        OverlappedOpening.ThrowIfUnbuffered(OperatingSystem.IsWindows() && WindowsCalls.IsUnbuffered(handle));
        if (requested == FilePipeBackend.Overlapped && !handle.IsAsync)
        {
            throw new ArgumentException("The handle is not open for overlapped I/O, "
                + $"which {nameof(FilePipeBackend)}.{nameof(FilePipeBackend.Overlapped)} needs.", nameof(handle));
        }

        return Choose(requested, handle, path: null, appends: IsAppending(handle), sharesPosition);
    }

    /// <summary>The back end for an open file on this system; on Windows overlapped I/O only where that is asked for.</summary>
    internal static OpenedFile Choose(
        FilePipeBackend requested,
        SafeFileHandle handle,
        string? path,
        bool appends = false,
        bool sharesPosition = false,
        UnixCalls? calls = null,
        FileProperties? known = null)
    {
        FileProperties properties = known ?? FileProperties.Of(handle, path);
        return requested != FilePipeBackend.Portable && IsLinux
            ? new UnixFile(handle, path, properties, calls) { Appends = appends, SharesPosition = sharesPosition }
            : requested == FilePipeBackend.Overlapped && OperatingSystem.IsWindows()
                ? new OverlappedFile(handle, path, properties) { Appends = appends, SharesPosition = sharesPosition }
            : properties.CanSeek ? new PortableFile(handle, path, properties) { Appends = appends, SharesPosition = sharesPosition }
            : new SequentialFile(handle, path, properties) { Appends = appends, SharesPosition = sharesPosition };
    }

    [SupportedOSPlatform("windows")]
    private static OpenedFile OpenWindows(in FileToOpen file)
    {
        OverlappedOpening.ThrowIfUnbuffered((file.Options & Option.NoBuffering) != 0);
        bool isOverlapped = OverlappedOpening.IsFor(file);

        // Where the choice is the library's, what is not overlapped is synchronous, whatever the hint says. The runtime opens no file so
        // that the system appends.
        bool appends = file.Mode == FileMode.Append && !OverlappedOpening.IsDevice(file.Path);
        FileToOpen chosen = isOverlapped
            ? file with { Backend = FilePipeBackend.Overlapped, Options = file.Options | FileOptions.Asynchronous }
            : file.Backend == FilePipeBackend.Auto ? file with { Options = file.Options & ~FileOptions.Asynchronous }
            : file;
        SafeFileHandle handle = appends && !isOverlapped ? OverlappedOpening.OpenForAppending(file.Path, file.Share, file.Options)
            : chosen.OpenHandle();
        return ChooseOrClose(chosen, handle, appends);
    }

    /// <summary>As the runtime does.</summary>
    [UnsupportedOSPlatform("windows")]
    private static OpenedFile OpenUnix(in FileToOpen file)
    {
        SafeFileHandle handle = file.OpenHandle();
        return ChooseOrClose(file, handle, appends: file.Mode == FileMode.Append && Libc.ChangeFlags(handle, set: Libc.O_APPEND) >= 0);
    }

    /// <summary>The back end for a file that was opened by its path; closes it where this throws.</summary>
    internal static OpenedFile ChooseOrClose(in FileToOpen file, SafeFileHandle handle, bool appends = false)
    {
        try
        {
            return Choose(file.Backend, handle, file.Path, appends);
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
            throw new UnauthorizedAccessException(
                $"The handle is not open for {missing}, but for {given} only: '{FileProperties.PathOf(handle)}'");
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
