namespace Pipelines.File.IO;

/// <summary>Opens files and chooses their back end.</summary>
internal static class FileOpening
{
    /// <summary>Opens a file by path, with the exceptions of <see cref="FileStream"/>.</summary>
    /// <exception cref="FileExistsException">The mode is <see cref="FileMode.CreateNew"/>, and the file exists.</exception>
    internal static OpenedFile Open(in FileToOpen given)
    {
        ArgumentException.ThrowIfNullOrEmpty(given.Path, "path");
        ThrowIfNotSupported(given.Backend);
        if (given.Mode == FileMode.Append && !OperatingSystem.IsWindows() && !OperatingSystem.IsLinux())
        {
            throw new PlatformNotSupportedException($"{nameof(FileMode)}.{nameof(FileMode.Append)} is not supported here, "
                + "because .NET cannot let the system put every write at the end of the file.");
        }

        FileToOpen file = given.WithFullPath();
        try
        {
            FileStatus before = default;
            bool isMissing = file.Mode == FileMode.CreateNew
                || (file.MayMake && FileStatus.OfFullName(file.Path, out before) == NameMeaning.Nothing);
            OpenedFile opened = OperatingSystem.IsWindows() ? OverlappedOpening.Open(file) : OpenUnix(file, isMissing);

            // Another process may have made or removed the file in between, so the identity decides: the file is new unless it is the one
            // that was there before.
            opened.IsNew = isMissing || (file.MayMake && opened.Identity != before.Identity);
            return opened;
        }
        catch (IOException e) when (file.Mode == FileMode.CreateNew && FileExistsException.Says(e))
        {
            throw FileExistsException.At(given.Path, e);
        }
    }

    /// <summary>Opens standard input or output. Releasing the file does not close it.</summary>
    /// <exception cref="IOException">The process has no such stream.</exception>
    /// <exception cref="UnauthorizedAccessException">The stream is open only for the other direction.</exception>
    internal static OpenedFile OpenStandard(FilePipeBackend requested, bool isOutput)
    {
        nint number = OperatingSystem.IsWindows()
            ? Kernel32.GetStdHandle(isOutput ? Kernel32.STD_OUTPUT_HANDLE : Kernel32.STD_INPUT_HANDLE) : isOutput ? 1 : 0;
        SafeFileHandle handle = new(number, ownsHandle: false);

        // If the parent process has closed the descriptor (<&-), its number may belong to a file that this process opened. Such a file has
        // FD_CLOEXEC, and a descriptor that was inherited through exec has not.
        if (OperatingSystem.IsWindows() ? number is 0 or -1
            : OperatingSystem.IsLinux() && LibcCalls.FCntl(handle, Libc.F_GETFD, 0) is < 0 or Libc.FD_CLOEXEC)
        {
            throw new IOException($"This process has no standard {(isOutput ? "output" : "input")}.");
        }

        return Attach(requested, handle, isOutput ? FileAccess.Write : FileAccess.Read, sharesPosition: true);
    }

    /// <summary>Makes an <see cref="OpenedFile"/> of a caller's handle.</summary>
    /// <exception cref="UnauthorizedAccessException">The handle is not open for that access.</exception>
    /// <exception cref="NotSupportedException">The handle is open for direct I/O.</exception>
    internal static OpenedFile Attach(FilePipeBackend requested, SafeFileHandle handle, FileAccess access, bool sharesPosition = false)
    {
        ArgumentNullException.ThrowIfNull(handle);
        ThrowIfNotSupported(requested);
        ObjectDisposedException.ThrowIf(handle.IsClosed, handle);
        if (handle.IsInvalid)
        {
            throw new ArgumentException("The handle is invalid.", nameof(handle));
        }

        int flags = OperatingSystem.IsLinux() && LibcCalls.TryGetFlags(handle, out int told) ? told
            : access == FileAccess.Read ? Libc.O_RDONLY : Libc.O_WRONLY;
        RequireAccess(handle, access, flags);
        OverlappedOpening.ThrowIfUnbuffered(OperatingSystem.IsWindows() && WindowsCalls.IsUnbuffered(handle));
        if (requested == FilePipeBackend.Overlapped && !handle.IsAsync)
        {
            throw new ArgumentException("The handle is not open for overlapped I/O, "
                + $"which {nameof(FilePipeBackend)}.{nameof(FilePipeBackend.Overlapped)} needs.", nameof(handle));
        }

        OpenedFile file = Choose(requested, handle, path: null, appends: (flags & Libc.O_APPEND) != 0, sharesPosition);
        return (flags & Libc.O_DIRECT) == 0 || !file.CanSeek ? file : throw new NotSupportedException(
            $"The file is open for direct I/O (O_DIRECT), whose reads and writes have to be of whole blocks: '{file.Path}'. "
            + $"Open it without; {nameof(FileCaching)}.{nameof(FileCaching.DropBehind)} leaves the page cache to other files, too.");
    }

    /// <summary>Chooses the back end of an open file. On Windows that is overlapped I/O if the handle is open for it.</summary>
    internal static OpenedFile Choose(
        FilePipeBackend requested,
        SafeFileHandle handle,
        string? path,
        bool appends = false,
        bool sharesPosition = false,
        UnixCalls? calls = null,
        FileProperties? properties = null)
    {
        FileProperties file = properties ?? FileProperties.Of(handle, path);
        bool isPortable = requested == FilePipeBackend.Portable;
        OpenedFile opened = !isPortable && OperatingSystem.IsLinux() ? new UnixFile(handle, path, file, calls)
            : !isPortable && OperatingSystem.IsWindows() && handle.IsAsync ? new OverlappedFile(handle, path, file)
            : file.CanSeek ? new PortableFile(handle, path, file, calls)
            : new SequentialFile(handle, path, file);
        (opened.Appends, opened.SharesPosition) = (appends, sharesPosition);
        return opened;
    }

    [UnsupportedOSPlatform("windows")]
    private static OpenedFile OpenUnix(in FileToOpen file, bool isMissing)
    {
        if (OperatingSystem.IsLinux() && ReadOpening.TryOpen(file) is { } reader)
        {
            return reader;
        }

        // The runtime ignores most errors of fallocate(2), which may say that the device fails.
        bool reserves = OperatingSystem.IsLinux() && file.Mode is FileMode.Create or FileMode.CreateNew;
        FileToOpen bare = reserves ? file with { PreallocationSize = 0 } : file;

        // With Create the runtime truncates a new file, too. ext4 would take its bytes for a replacement, and begin to write them to the
        // device in close(2) (ext4(5), auto_da_alloc), which takes a quarter of the time of a file of 100 MiB.
        bool makes = isMissing && file is { Mode: FileMode.Create, Access: FileAccess.Write };
        SafeFileHandle handle;
        try
        {
            handle = (makes ? bare with { Mode = FileMode.CreateNew } : bare).OpenHandle();
        }
        catch (IOException e) when (makes && FileExistsException.Says(e))
        {
            // It was made meanwhile, or the path is that of a link to no file.
            handle = bare.OpenHandle();
        }

        try
        {
            UnixCalls.Default.Reserve(handle, reserves ? file.PreallocationSize : 0, file.Path);
        }
        catch (IOException)
        {
            handle.Dispose();
            _ = LibcCalls.Unlink(file.Path);
            throw;
        }

        // .NET cannot open a file so that the system appends.
        bool appends = file.Mode == FileMode.Append && LibcCalls.ChangeFlags(handle, set: Libc.O_APPEND) >= 0;
        OpenedFile opened = ChooseOrClose(file, handle, appends);
        return appends && LocalFileSystems.AppendsAsOpened(opened.Properties)
            ? ChooseOrClose(file, ReopenToAppend(handle, file.Path), appends) : opened;
    }

    /// <summary>
    /// Opens the file again with O_APPEND, and closes the first handle. A lock of .NET's ends with that; what the options asked for stays.
    /// </summary>
    [UnsupportedOSPlatform("windows")]
    internal static SafeFileHandle ReopenToAppend(SafeFileHandle handle, string path)
    {
        using (handle)
        {
            int flags = (LibcCalls.TryGetFlags(handle, out int told) ? told & Libc.O_SYNC : 0)
                | (LibcCalls.FCntl(handle, Libc.F_GETFD, 0) == Libc.FD_CLOEXEC ? Libc.O_CLOEXEC : 0);
            long descriptor = UnixCalls.Default.OpenToAppend(UnixName.Of($"/proc/self/fd/{handle.DangerousGetHandle()}"), flags);
            return descriptor >= 0 ? new SafeFileHandle((nint)descriptor, ownsHandle: true)
                : throw FileErrors.FromErrno((int)-descriptor, path);
        }
    }

    /// <summary>Chooses the back end of a file that was opened by path; closes the file if this throws.</summary>
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

    private static void RequireAccess(SafeFileHandle handle, FileAccess access, int flags)
    {
        if ((flags & Libc.O_ACCMODE) == (access == FileAccess.Read ? Libc.O_WRONLY : Libc.O_RDONLY))
        {
            (string missing, string given) = access == FileAccess.Read ? ("reading", "writing") : ("writing", "reading");
            throw new UnauthorizedAccessException(
                $"The handle is not open for {missing}, but for {given} only: '{FileProperties.PathOf(handle)}'");
        }
    }

    /// <summary>Throws if this system lacks the back end, or the process has 32 bits.</summary>
    /// <exception cref="PlatformNotSupportedException">This system lacks that back end, or the process has 32 bits.</exception>
    internal static void ThrowIfNotSupported(FilePipeBackend requested) => ThrowIfNotSupported(requested, Environment.Is64BitProcess);

    internal static void ThrowIfNotSupported(FilePipeBackend requested, bool is64Bit)
    {
        // The system calls are declared for 64 bits: where off_t has 32, they would move the position at random.
        if (!is64Bit && !OperatingSystem.IsWindows())
        {
            throw new PlatformNotSupportedException("Pipelines.File needs a 64-bit process on this system.");
        }

        if ((requested == FilePipeBackend.UnixThreads && !OperatingSystem.IsLinux())
            || (requested == FilePipeBackend.Overlapped && !OperatingSystem.IsWindows()))
        {
            throw new PlatformNotSupportedException($"This system has no {nameof(FilePipeBackend)}.{requested} back end.");
        }
    }
}
