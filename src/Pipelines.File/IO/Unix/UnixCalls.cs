namespace Pipelines.File.IO;

/// <summary>
/// The system calls that <see cref="UnixFile"/> makes, each with the answer that the kernel gives: the bytes, or the negative errno. Tests
/// replace them to make a call fail, return short or stall.
/// </summary>
internal unsafe partial class UnixCalls
{
    internal static UnixCalls Default { get; } = new();

    /// <summary>
    /// preadv(2), or readv(2) for an offset of -1, which is the file's own position, for files that cannot seek; with flags (RWF_NOWAIT,
    /// RWF_DONTCACHE) preadv2(2), which not every system and file knows.
    /// </summary>
    internal virtual long Read(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
        => Answer(flags != 0 ? Libc.PReadV2(file, vectors, count, offset, flags)
            : offset < 0 ? Libc.ReadV(file, vectors, count)
            : Libc.PReadV(file, vectors, count, offset));

    /// <summary>pwritev(2), writev(2) and pwritev2(2), likewise.</summary>
    internal virtual long Write(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
        => Answer(flags != 0 ? Libc.PWriteV2(file, vectors, count, offset, flags)
            : offset < 0 ? Libc.WriteV(file, vectors, count)
            : Libc.PWriteV(file, vectors, count, offset));

    /// <summary>fdatasync(2).</summary>
    internal virtual long Sync(SafeFileHandle file) => Answer(Libc.FDataSync(file));

    /// <summary>
    /// poll(2) without waiting: whether a read or write would not block. Errors and hang-ups count as ready: the call itself tells, also
    /// where the caller has closed the file meanwhile.
    /// </summary>
    internal virtual bool IsReady(SafeFileHandle file, short events)
    {
        Libc.PollDescriptor descriptor = new() { Descriptor = (int)file.DangerousGetHandle(), Events = events };
        return Libc.Poll(&descriptor, 1, 0) > 0;
    }

    /// <summary>
    /// close(2) of a second descriptor of the file, which flushes it as the last one's does (NFS, FUSE, SMB), and so has its error while
    /// the file is still open. Linux only. Where there is no second descriptor the error is not told.
    /// </summary>
    internal virtual long CloseCopy(SafeFileHandle file)
    {
        int copy = OperatingSystem.IsLinux() ? Libc.FCntl(file, Libc.F_DUPFD_CLOEXEC, 0) : -1;
        return copy < 0 ? 0 : Answer(Libc.Close(copy));
    }

    /// <summary>
    /// fcntl(2): sets O_NONBLOCK on an open file description that is this file's alone. Linux only: elsewhere the variable argument is
    /// passed another way.
    /// </summary>
    internal virtual bool TrySetNonBlocking(SafeFileHandle file)
        => OperatingSystem.IsLinux() && Libc.ChangeFlags(file, set: Libc.O_NONBLOCK) >= 0;

    /// <summary>fcntl(2): whether the file was opened with O_DIRECT.</summary>
    internal virtual bool IsDirect(SafeFileHandle file)
        => OperatingSystem.IsLinux() && Libc.TryGetFlags(file, out int flags) && (flags & Libc.O_DIRECT) != 0;

    /// <summary>
    /// fcntl(2): sets O_DIRECT on an open file description, or takes it away. Linux only. EINVAL: the file system has no direct I/O.
    /// </summary>
    internal virtual long SetDirect(SafeFileHandle file, bool isDirect)
        => Answer(isDirect ? Libc.ChangeFlags(file, set: Libc.O_DIRECT) : Libc.ChangeFlags(file, cleared: Libc.O_DIRECT));

    /// <summary>
    /// open(2) of an open file (proc_pid_fd(5)): a descriptor whose description is nobody else's, with O_SYNC, O_DSYNC and O_DIRECT as the
    /// first has them. Linux only.
    /// </summary>
    internal virtual long OpenAgain(SafeFileHandle file, bool forWriting)
    {
        bool held = false;
        try
        {
            file.DangerousAddRef(ref held);
            int access = forWriting ? Libc.O_WRONLY : Libc.O_RDONLY;
            return Answer(!Libc.TryGetFlags(file, out int flags) ? -1
                : Libc.Open($"/proc/self/fd/{file.DangerousGetHandle()}",
                (flags & (Libc.O_SYNC | Libc.O_DIRECT)) | access | Libc.O_CLOEXEC));
        }
        finally
        {
            if (held)
            {
                file.DangerousRelease();
            }
        }
    }

    /// <summary>
    /// statx(2), STATX_DIOALIGN: what direct I/O asks for, bytes; 0: there is none. <see langword="false"/>: the kernel (Linux 6.1) or the
    /// file system does not tell.
    /// </summary>
    internal virtual bool TryGetDirectBlocks(SafeFileHandle file, out int ofOffset, out int ofMemory)
    {
        bool isTold = FileStatus.TryGet(file, Libc.STATX_DIOALIGN, out Libc.FileStatus status) && (status.Mask & Libc.STATX_DIOALIGN) != 0;
        (ofOffset, ofMemory) = isTold ? ((int)status.DirectOffsetBlock, (int)status.DirectMemoryBlock) : default;
        return isTold;
    }

    private static long Answer(long result) => result >= 0 ? result : -Marshal.GetLastPInvokeError();
}
