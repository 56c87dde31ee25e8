using Pipelines.File.Diagnostics;

namespace Pipelines.File.IO;

/// <summary>
/// The system calls in which a file may lose bytes, or wait. Each returns the kernel's result: the number of bytes, or the negative errno.
/// Tests override them to make a call fail, return less or stall.
/// </summary>
internal unsafe partial class UnixCalls
{
    internal static UnixCalls Default { get; } = new();

    /// <summary>
    /// preadv(2); readv(2) if the offset is -1: at the file's own position, or for a file that cannot seek. With a flag
    /// (RWF_NOWAIT) preadv2(2), which not every kernel, file system and C library supports.
    /// </summary>
    internal virtual long Read(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
    {
        try
        {
            return Answer(flags != 0 ? LibcCalls.PReadV2(file, vectors, count, offset, flags)
                : offset < 0 ? LibcCalls.ReadV(file, vectors, count)
                : LibcCalls.PReadV(file, vectors, count, offset));
        }
        catch (EntryPointNotFoundException) when (flags != 0)
        {
            return -Libc.ENOSYS;
        }
    }

    /// <summary>pwritev(2), writev(2) or pwritev2(2), in the same way; pwrite(2) for one buffer, which costs less.</summary>
    internal virtual long Write(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
    {
        try
        {
            return Answer(flags != 0 ? LibcCalls.PWriteV2(file, vectors, count, offset, flags)
                : offset < 0 ? LibcCalls.WriteV(file, vectors, count)
                : count == 1 ? LibcCalls.PWrite(file, (byte*)vectors->Base, vectors->Length, offset)
                : LibcCalls.PWriteV(file, vectors, count, offset));
        }
        catch (EntryPointNotFoundException) when (flags != 0)
        {
            return -Libc.ENOSYS;
        }
    }

    /// <summary>
    /// fdatasync(2); on macOS fcntl(2) with F_FULLFSYNC, because fsync(2) there leaves the bytes in the cache of the device, or fsync(2) if
    /// the file system does not know that.
    /// </summary>
    internal virtual long Sync(SafeFileHandle file)
    {
        if (!OperatingSystem.IsMacOS())
        {
            return Answer(LibcCalls.FDataSync(file));
        }

        long answer = Answer(LibcCalls.FCntl(file, Libc.F_FULLFSYNC, 0));
        return answer is -Libc.EINVAL or -Libc.ENOTTY or -Libc.ENOTSUPOfMacOS ? Answer(LibcCalls.FSync(file)) : answer;
    }

    /// <summary>
    /// <see cref="Sync"/>, made again after EINTR. EINVAL is success for what is no regular file: a FIFO, a terminal or a socket has
    /// nothing to sync; and on a read-only image (squashfs), which does not know the call. Every other error may mean lost bytes, EROFS,
    /// too: a file system that is read-only after an error has dropped them. Success is that of <see cref="TellFailure"/>, too.
    /// </summary>
    internal long SyncData(SafeFileHandle file, in FileProperties properties)
        => properties.IsRegular
            ? Repeat(file, static (calls, file, fileSystem) => calls.Sync(file) is < 0 and long error
                ? error == -Libc.EINVAL && LibcCalls.IsOnReadOnlyMount(file) ? 0 : error : calls.TellFailure(file, fileSystem),
                properties.FileSystem)
            : SyncToEnd(file) is < 0 and not -Libc.EINVAL and long failure ? failure : 0;

    /// <summary>
    /// Returns a negative errno if the file system has failed, else 0. A sync that comes between the end of the file system's journal and
    /// the moment at which the sync would notice it answers 0 for bytes that are lost. Then a write of no bytes, which does nothing else
    /// (write(2)), tells it on ext4, and lseek(2) on XFS: docs/durability.md has the figures. On other and unknown file systems it is both.
    /// </summary>
    /// <param name="file">The file.</param>
    /// <param name="fileSystem">f_type of statfs(2); 0 or less if unknown.</param>
    internal virtual long TellFailure(SafeFileHandle file, long fileSystem)
    {
        long answer = fileSystem == LocalFileSystems.Xfs ? 0 : Answer(LibcCalls.PWrite(file, null, 0, 0));
        answer = answer is -Libc.EROFS or -Libc.EIO || fileSystem == LocalFileSystems.Ext ? answer
            : Answer(LibcCalls.LSeek(file, 0, SeekOrigin.Current));
        return answer is -Libc.EROFS or -Libc.EIO ? answer : 0;
    }

    /// <summary>
    /// Returns what closing the file would answer, 0 or a negative errno (<see cref="CloseCopy"/>, made again after EINTR). 0 for what is
    /// no regular file or on a file system that reports nothing then, and if the caller has closed the handle, and so got the error.
    /// </summary>
    internal long TellClose(SafeFileHandle file, in FileProperties properties)
    {
        try
        {
            return properties.IsRegular && TellsAtClose(properties) ? Repeat(file, static (calls, file, _) => calls.CloseCopy(file)) : 0;
        }
        catch (ObjectDisposedException)
        {
            return 0;
        }
    }

    /// <summary>Whether closing a file may report lost bytes: not where the kernel alone has them, which then says so in a sync.</summary>
    internal virtual bool TellsAtClose(in FileProperties properties) => !LocalFileSystems.Hold(properties);

    /// <summary>
    /// poll(2) without waiting: whether a read or write would not block. Errors and hang-ups count as ready, also if the caller has closed
    /// the file: the call itself reports them.
    /// </summary>
    internal virtual bool IsReady(SafeFileHandle file, short events)
    {
        Libc.PollDescriptor descriptor = new() { Descriptor = (int)file.DangerousGetHandle(), Events = events };
        return LibcCalls.Poll(&descriptor, 1, 0) > 0;
    }

    /// <summary>
    /// close(2) of a duplicate descriptor, which flushes the file as closing the last one does (NFS, FUSE, SMB). So it returns that error
    /// while the file is still open. If the system has no descriptor for the duplicate, a sync tells the same. Linux only: elsewhere 0.
    /// </summary>
    internal virtual long CloseCopy(SafeFileHandle file)
    {
        if (!OperatingSystem.IsLinux())
        {
            return 0;
        }

        int copy = Duplicate(file);
        if (copy < 0)
        {
            Probe.Rare("a sync in place of a close");
            return SyncToEnd(file);
        }

        return Answer(LibcCalls.Close(copy));
    }

    /// <inheritdoc cref="FileStatus.Ask"/>
    internal virtual FileStatus? AskStatus(SafeFileHandle file) => FileStatus.Ask(file);

    /// <summary>fcntl(2) with F_DUPFD_CLOEXEC: returns a descriptor, or -1.</summary>
    internal virtual int Duplicate(SafeFileHandle file) => LibcCalls.FCntl(file, Libc.F_DUPFD_CLOEXEC, 0);

    /// <summary>
    /// fcntl(2): sets O_NONBLOCK on an open file description that nobody else uses. Linux only: elsewhere the variadic argument is passed
    /// differently.
    /// </summary>
    internal virtual bool TrySetNonBlocking(SafeFileHandle file)
        => OperatingSystem.IsLinux() && LibcCalls.ChangeFlags(file, set: Libc.O_NONBLOCK) >= 0;

    private long SyncToEnd(SafeFileHandle file) => Repeat(file, static (calls, file, _) => calls.Sync(file));

    /// <summary>
    /// Makes the call until no signal interrupts it. If the caller closes the handle meanwhile, it is closed at the end: until then its
    /// number means no other file.
    /// </summary>
    /// <exception cref="ObjectDisposedException">The handle is closed.</exception>
    private long Repeat(SafeFileHandle file, Func<UnixCalls, SafeFileHandle, long, long> call, long argument = 0)
    {
        bool isHeld = false;
        try
        {
            file.DangerousAddRef(ref isHeld);
            long answer = call(this, file, argument);
            while (answer == -Libc.EINTR)
            {
                answer = call(this, file, argument);
            }

            return answer;
        }
        finally
        {
            if (isHeld)
            {
                file.DangerousRelease();
            }
        }
    }

    private static long Answer(long result) => result >= 0 ? result : -Marshal.GetLastPInvokeError();
}
