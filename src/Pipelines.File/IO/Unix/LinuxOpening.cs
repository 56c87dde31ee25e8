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

    // Encrypted means nothing here. What is to be deleted is closed by the runtime, which deletes it then.
    private const FileOptions AnyOption
        = FileOptions.WriteThrough | FileOptions.Asynchronous | FileOptions.RandomAccess | FileOptions.SequentialScan
            | FileOptions.Encrypted;

    /// <summary>
    /// The open file; <see langword="null"/> where the arguments do not go together, or a call has failed: File.OpenHandle decides then,
    /// and throws the documented exceptions.
    /// </summary>
    /// <exception cref="IOException">Another process has it open exclusively.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    internal static OpenedFile? TryOpen(in FileToOpen file)
    {
        bool isPlain = (file.Options & ~AnyOption) == 0
            && (file.PreallocationSize == 0 || file.Mode is FileMode.Create or FileMode.CreateNew)
            && (file.Access == FileAccess.Read ? file.Mode == FileMode.Open
                : file.Access == FileAccess.Write && file.Mode is >= FileMode.CreateNew and <= FileMode.Append);
        bool isMade = false;
        FileStatus before = default;
        SafeFileHandle? handle = isPlain ? TryCall(file, out isMade, out before) : null;
        if (handle is null)
        {
            return null;
        }

        try
        {
            FileProperties properties = FileProperties.Of(handle, file.Path);
            if (file.Access == FileAccess.Read || file.Share == FileShare.None || LocalFileSystems.LetWritersLock(handle, properties))
            {
                FileOpening.Lock(handle, file.Path, file.Share);
            }

            // Somebody may have made or removed a file of that name meanwhile, and it may be a link's: only the file that was there before
            // is not new.
            bool isNew = isMade || (file.MayMake && properties.IdentityOf(handle) != before.Identity);

            // What is no regular file cannot be emptied, and need not be.
            bool empties = !isMade && file.Mode is FileMode.Create or FileMode.Truncate;
            bool isReady = (!empties || !properties.IsRegular || Libc.FTruncate(handle, 0) == 0)
                && (file.PreallocationSize == 0 || TryAllocate(handle, file));
            if (isReady)
            {
                Advise(handle, file, properties);
                OpenedFile opened = FileOpening.Choose(file.Backend, handle, file.Path, appends: file.Mode == FileMode.Append,
                    known: empties ? properties.Emptied : properties);
                opened.IsNew = isNew;
                return opened;
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
    /// (ext4(5), auto_da_alloc). What is appended to is open with O_APPEND, without which a file that may only grow (chattr(1), +a) cannot
    /// be opened.
    /// </summary>
    private static SafeFileHandle? TryCall(in FileToOpen file, out bool isMade, out FileStatus before)
    {
        before = default;
        uint permissions = file.CreateMode is { } given ? (uint)given : Libc.NewFileMode;
        int flags = (file.Access == FileAccess.Read ? Libc.O_RDONLY : Libc.O_WRONLY)
            | ((file.Share & FileShare.Inheritable) == 0 ? Libc.O_CLOEXEC : 0)
            | ((file.Options & FileOptions.WriteThrough) != 0 ? Libc.O_SYNC : 0)
            | (file.Mode == FileMode.Append ? Libc.O_APPEND : 0);
        int descriptor = -1;
        bool isNext = file.Mode is not (FileMode.Create or FileMode.CreateNew);
        if (!isNext)
        {
            descriptor = Libc.Open(file.Path, flags | Libc.O_CREAT | Libc.O_EXCL, permissions);
            isNext = descriptor < 0 && file.Mode == FileMode.Create && Marshal.GetLastPInvokeError() == Libc.EEXIST;
        }

        isMade = descriptor >= 0;
        if (isNext)
        {
            _ = file.MayMake ? FileStatus.OfName(file.Path, out before) : NameMeaning.Unknown;
            descriptor = Libc.Open(file.Path, flags | (file.MayMake ? Libc.O_CREAT : 0), permissions);
        }

        return descriptor < 0 ? null : new SafeFileHandle(descriptor, ownsHandle: true);
    }

    /// <summary>
    /// As in the runtime: only a lack of room counts, everything else is a file system that cannot reserve any, and the length stays.
    /// </summary>
    private static bool TryAllocate(SafeFileHandle handle, in FileToOpen file)
    {
        if (Libc.FAllocate(handle, Libc.FALLOC_FL_KEEP_SIZE, 0, file.PreallocationSize) == 0
            || Marshal.GetLastPInvokeError() is not (Libc.ENOSPC or Libc.EFBIG))
        {
            return true;
        }

        _ = Libc.Unlink(file.Path);
        return false;
    }

    /// <summary>posix_fadvise(2), whose advice is about reading ahead. Of the two options the runtime takes this one, too.</summary>
    private static void Advise(SafeFileHandle handle, in FileToOpen file, in FileProperties properties)
    {
        bool isRandom = (file.Options & FileOptions.RandomAccess) != 0;
        bool isSequential = (file.Options & FileOptions.SequentialScan) != 0 && !(properties.IsRegular && properties.Length <= ReadAhead);
        if (file.Access == FileAccess.Read && (isRandom || isSequential))
        {
            _ = Libc.FAdvise(handle, 0, 0, isRandom ? Libc.POSIX_FADV_RANDOM : Libc.POSIX_FADV_SEQUENTIAL);
        }
    }
}
