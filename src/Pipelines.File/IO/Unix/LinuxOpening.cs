namespace Pipelines.File.IO;

/// <summary>
/// Opens files by path as <see cref="System.IO.File.OpenHandle"/> does on Linux, its locks included, with fewer system calls: what statx(2)
/// tells of the open file answers what the runtime asks by itself (fstat(2), fstatfs(2)), and a handle that the runtime has not locked is
/// closed without being unlocked.
/// </summary>
internal static unsafe class LinuxOpening
{
    // Bytes that the kernel reads ahead by itself: of a file that is not longer, it reads everything in any case.
    private const long ReadAhead = 128 * 1024;

    private const FileShare AnyShare = FileShare.ReadWrite | FileShare.Delete | FileShare.Inheritable;

    // Encrypted means nothing here. What is to be deleted is closed by the runtime, which deletes it then.
    private const FileOptions AnyOption
        = FileOptions.WriteThrough | FileOptions.Asynchronous | FileOptions.RandomAccess | FileOptions.SequentialScan | FileOptions.Encrypted;

    /// <summary>
    /// The open file; <see langword="null"/> where the arguments do not go together, or a call has failed: File.OpenHandle decides then,
    /// and throws the documented exceptions.
    /// </summary>
    /// <param name="fullPath">The whole path.</param>
    /// <param name="mode">How; what is appended to is open with O_APPEND, without which a file that may only grow (chattr(1), +a) cannot be
    /// opened.</param>
    /// <param name="access">For reading or for writing.</param>
    /// <param name="share">Whether it is locked exclusively, and left open by exec.</param>
    /// <param name="options">Options.</param>
    /// <param name="preallocationSize">Bytes to reserve in a file that is made or emptied.</param>
    /// <param name="createMode">The permissions of a file that is made, less the umask; <see langword="null"/>: the runtime's.</param>
    /// <param name="properties">What it is.</param>
    /// <param name="isNew">Whether this has made it. Of a file that somebody else makes or removes meanwhile it may be said.</param>
    /// <exception cref="IOException">Another process has it open exclusively.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    internal static SafeFileHandle? TryOpen(
        string fullPath,
        FileMode mode,
        FileAccess access,
        FileShare share,
        FileOptions options,
        long preallocationSize,
        UnixFileMode? createMode,
        out FileProperties properties,
        out bool isNew)
    {
        properties = default;
        isNew = false;
        bool isPlain = (share & ~AnyShare) == 0
            && (options & ~AnyOption) == 0
            && (preallocationSize == 0 || mode is FileMode.Create or FileMode.CreateNew)
            && (access == FileAccess.Read ? mode == FileMode.Open : access == FileAccess.Write && mode is >= FileMode.CreateNew and <= FileMode.Append);
        NameMeaning before = NameMeaning.Unknown;
        FileStatus statusBefore = default;
        bool isMade = false;
        SafeFileHandle? handle = isPlain ? TryCall(fullPath, mode, access, share, options, createMode, out isMade, out before, out statusBefore) : null;
        if (handle is null)
        {
            return null;
        }

        try
        {
            properties = FileProperties.Of(handle, fullPath);

            // Somebody may have made or removed a file of that name meanwhile, and it may be a link's: only the file that was there before
            // is not new.
            isNew = isMade || before == NameMeaning.Nothing || (FileOpening.MayMake(mode) && properties.IdentityOf(handle) != statusBefore.Identity);
            if (access == FileAccess.Read || share == FileShare.None || LocalFileSystems.LetWritersLock(handle, properties))
            {
                FileOpening.Lock(handle, fullPath, share);
            }

            bool isReady = (isMade || mode is not (FileMode.Create or FileMode.Truncate) || TryEmpty(handle, ref properties))
                && (preallocationSize == 0 || TryAllocate(handle, fullPath, preallocationSize));
            if (isReady)
            {
                Advise(handle, access, options, properties);
                return handle;
            }
        }
        catch
        {
            handle.Dispose();
            throw;
        }

        handle.Dispose();
        return null;
    }

    /// <summary>
    /// open(2), with O_EXCL first where the file is to be made. One that was just made is not truncated: ext4 would take its bytes for the
    /// replacement of others, allocate them and begin to write them to the device in close(2), a quarter of the time of a 100 MiB file
    /// (ext4(5), auto_da_alloc).
    /// </summary>
    private static SafeFileHandle? TryCall(
        string fullPath,
        FileMode mode,
        FileAccess access,
        FileShare share,
        FileOptions options,
        UnixFileMode? createMode,
        out bool isMade,
        out NameMeaning before,
        out FileStatus statusBefore)
    {
        before = NameMeaning.Unknown;
        statusBefore = default;
        uint permissions = createMode is { } given ? (uint)given : Libc.NewFileMode;
        int flags = (access == FileAccess.Read ? Libc.O_RDONLY : Libc.O_WRONLY)
            | ((share & FileShare.Inheritable) == 0 ? Libc.O_CLOEXEC : 0)
            | ((options & FileOptions.WriteThrough) != 0 ? Libc.O_SYNC : 0)
            | (mode == FileMode.Append ? Libc.O_APPEND : 0);
        int descriptor = -1;
        bool isNext = mode is not (FileMode.Create or FileMode.CreateNew);
        if (!isNext)
        {
            descriptor = Libc.Open(fullPath, flags | Libc.O_CREAT | Libc.O_EXCL, permissions);
            isNext = descriptor < 0 && mode == FileMode.Create && Marshal.GetLastPInvokeError() == Libc.EEXIST;
        }

        isMade = descriptor >= 0;
        if (isNext)
        {
            before = FileOpening.MayMake(mode) ? FileStatus.OfName(fullPath, out statusBefore) : before;
            descriptor = Libc.Open(fullPath, flags | (FileOpening.MayMake(mode) ? Libc.O_CREAT : 0), permissions);
        }

        return descriptor < 0 ? null : new SafeFileHandle(descriptor, ownsHandle: true);
    }

    /// <summary>What is no regular file cannot be emptied, and need not be.</summary>
    private static bool TryEmpty(SafeFileHandle handle, ref FileProperties properties)
    {
        if (properties.IsRegular && Libc.FTruncate(handle, 0) != 0)
        {
            return false;
        }

        properties = properties.Emptied;
        return true;
    }

    /// <summary>
    /// As in the runtime: only a lack of room counts, everything else is a file system that cannot reserve any, and the length stays.
    /// </summary>
    private static bool TryAllocate(SafeFileHandle handle, string fullPath, long size)
    {
        if (Libc.FAllocate(handle, Libc.FALLOC_FL_KEEP_SIZE, 0, size) == 0
            || Marshal.GetLastPInvokeError() is not (Libc.ENOSPC or Libc.EFBIG))
        {
            return true;
        }

        _ = Libc.Unlink(fullPath);
        return false;
    }

    /// <summary>posix_fadvise(2), whose advice is about reading ahead. Of the two options the runtime takes this one, too.</summary>
    private static void Advise(SafeFileHandle handle, FileAccess access, FileOptions options, in FileProperties properties)
    {
        bool isRandom = (options & FileOptions.RandomAccess) != 0;
        bool isSequential = (options & FileOptions.SequentialScan) != 0 && !(properties.IsRegular && properties.Length <= ReadAhead);
        if (access == FileAccess.Read && (isRandom || isSequential))
        {
            _ = Libc.FAdvise(handle, 0, 0, isRandom ? Libc.POSIX_FADV_RANDOM : Libc.POSIX_FADV_SEQUENTIAL);
        }
    }
}
