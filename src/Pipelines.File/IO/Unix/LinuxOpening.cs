namespace Pipelines.File.IO;

/// <summary>
/// Opens files by path as <see cref="System.IO.File.OpenHandle"/> does on Linux, including its locks, with fewer system calls: one statx(2)
/// replaces the fstat(2) and fstatfs(2) of the runtime, and closing a handle that the runtime has not locked needs no unlock.
/// </summary>
[UnsupportedOSPlatform("windows")]
internal static unsafe class LinuxOpening
{
    // The number of bytes that the kernel reads ahead by default. It reads a file up to this length as a whole in any case.
    private const long ReadAhead = 128 * 1024;

    // Encrypted has no effect here. DeleteOnClose is missing: the runtime's handle deletes the file when it is closed.
    private const FileOptions AnyOption
        = FileOptions.WriteThrough | FileOptions.Asynchronous | FileOptions.RandomAccess | FileOptions.SequentialScan
            | FileOptions.Encrypted;

    /// <summary>
    /// Whether this class opens such a file. Otherwise File.OpenHandle does, or says that the arguments do not fit together.
    /// </summary>
    internal static bool Opens(in FileToOpen file)
        => (file.Options & ~AnyOption) == 0
            && (file.PreallocationSize == 0 || file.Mode is FileMode.Create or FileMode.CreateNew)
            && (file.Access == FileAccess.Read ? file.Mode == FileMode.Open
                : file.Access == FileAccess.Write && file.Mode is >= FileMode.CreateNew and <= FileMode.Append);

    /// <summary>Opens the file, with the exceptions of File.OpenHandle.</summary>
    internal static OpenedFile Open(in FileToOpen file)
    {
        SafeFileHandle handle = Call(file, out bool isMade, out FileStatus before);
        try
        {
            FileProperties properties = FileProperties.Of(handle, file.Path);
            if (file.Access == FileAccess.Read || file.Share == FileShare.None || LocalFileSystems.LetWritersLock(handle, properties))
            {
                FileOpening.Lock(handle, file.Path, file.Share);
            }

            // Another process may have made or removed the file meanwhile, and the path may be a symbolic link's, so the identity decides:
            // the file is new unless it is the one that was there before.
            bool isNew = isMade || (file.MayMake && properties.IdentityOf(handle) != before.Identity);

            // Files that are not regular cannot be truncated, and need not be.
            bool empties = !isMade && file.Mode is FileMode.Create or FileMode.Truncate;
            if (empties && properties.IsRegular && LibcCalls.FTruncate(handle, 0) != 0)
            {
                throw FileErrors.FromErrno(Marshal.GetLastPInvokeError(), file.Path);
            }

            Allocate(handle, file);
            Advise(handle, file, properties);
            OpenedFile opened = FileOpening.Choose(file.Backend, handle, file.Path, appends: file.Mode == FileMode.Append,
                known: empties ? properties.Emptied : properties);
            opened.IsNew = isNew;
            return opened;
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Calls open(2), for Create and CreateNew first with O_EXCL. A file that was just created is not truncated: ext4 would take the new
    /// bytes for a replacement, allocate them and begin to write them to the device in close(2) (ext4(5), auto_da_alloc), which takes a
    /// quarter of the time of a 100 MiB file. Append opens with O_APPEND: an append-only file (chattr(1), +a) cannot be opened without it.
    /// </summary>
    private static SafeFileHandle Call(in FileToOpen file, out bool isMade, out FileStatus before)
    {
        before = default;
        int flags = (file.Access == FileAccess.Read ? Libc.O_RDONLY : Libc.O_WRONLY)
            | ((file.Share & FileShare.Inheritable) == 0 ? Libc.O_CLOEXEC : 0)
            | ((file.Options & FileOptions.WriteThrough) != 0 ? Libc.O_SYNC : 0)
            | (file.Mode == FileMode.Append ? Libc.O_APPEND : 0);
        int errno = Libc.EEXIST;
        int descriptor = -1;
        if (file.Mode is FileMode.Create or FileMode.CreateNew)
        {
            descriptor = Call(file, flags | Libc.O_CREAT | Libc.O_EXCL, out errno);
        }

        isMade = descriptor >= 0;
        if (!isMade && errno == Libc.EEXIST && file.Mode != FileMode.CreateNew)
        {
            _ = file.MayMake ? FileStatus.OfName(file.Path, out before) : NameMeaning.Unknown;
            descriptor = Call(file, flags | (file.MayMake ? Libc.O_CREAT : 0), out errno);
        }

        return descriptor >= 0 ? new SafeFileHandle(descriptor, ownsHandle: true) : throw FileErrors.OfOpening(errno, file);
    }

    private static int Call(in FileToOpen file, int flags, out int errno)
    {
        int descriptor;
        do
        {
            descriptor = LibcCalls.Open(file.Path, flags, file.CreateMode is { } given ? (uint)given : Libc.NewFileMode);
            errno = descriptor < 0 ? Marshal.GetLastPInvokeError() : 0;
        }
        while (errno == Libc.EINTR);
        return descriptor;
    }

    /// <summary>Reserves space; if there is none, removes the file.</summary>
    private static void Allocate(SafeFileHandle handle, in FileToOpen file)
    {
        try
        {
            UnixCalls.Default.Reserve(handle, file.PreallocationSize, file.Path);
        }
        catch (IOException)
        {
            _ = LibcCalls.Unlink(file.Path);
            throw;
        }
    }

    /// <summary>
    /// Calls posix_fadvise(2), which advises about read-ahead. If both options are set, RandomAccess counts, as in the runtime.
    /// </summary>
    private static void Advise(SafeFileHandle handle, in FileToOpen file, in FileProperties properties)
    {
        bool isRandom = (file.Options & FileOptions.RandomAccess) != 0;
        bool isSequential = (file.Options & FileOptions.SequentialScan) != 0 && !(properties.IsRegular && properties.Length <= ReadAhead);
        if (file.Access == FileAccess.Read && (isRandom || isSequential))
        {
            _ = LibcCalls.FAdvise(handle, 0, 0, isRandom ? Libc.POSIX_FADV_RANDOM : Libc.POSIX_FADV_SEQUENTIAL);
        }
    }
}
