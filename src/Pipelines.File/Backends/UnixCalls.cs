using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Interop;

namespace Pipelines.File.Backends;

/// <summary>
/// The system calls that <see cref="ThreadPoolBackend"/> makes, each with the answer that the kernel gives: the bytes, or the negative errno. Tests replace them
/// to make a call fail, return short or stall.
/// </summary>
internal unsafe partial class UnixCalls
{
    internal static UnixCalls Default { get; } = new();

    /// <summary>preadv2(2) with RWF_NOWAIT; a negative offset is the file's own position, for files that cannot seek.</summary>
    internal virtual long ReadNoWait(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset)
    {
        try
        {
            return Answer(Libc.PReadV2(file, vectors, count, offset < 0 ? -1 : offset, Libc.RWF_NOWAIT));
        }
        catch (EntryPointNotFoundException)
        {
            return -Libc.ENOSYSLinux;
        }
    }

    /// <summary>preadv(2), or readv(2) for a negative offset.</summary>
    internal virtual long Read(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset)
        => Answer(offset < 0 ? Libc.ReadV(file, vectors, count) : Libc.PReadV(file, vectors, count, offset));

    /// <summary>pwritev2(2) with RWF_NOWAIT; a negative offset is the file's own position.</summary>
    internal virtual long WriteNoWait(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset)
    {
        try
        {
            return Answer(Libc.PWriteV2(file, vectors, count, offset < 0 ? -1 : offset, Libc.RWF_NOWAIT));
        }
        catch (EntryPointNotFoundException)
        {
            return -Libc.ENOSYSLinux;
        }
    }

    /// <summary>pwritev(2), or writev(2) for a negative offset.</summary>
    internal virtual long Write(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset)
        => Answer(offset < 0 ? Libc.WriteV(file, vectors, count) : Libc.PWriteV(file, vectors, count, offset));

    /// <summary>fdatasync(2).</summary>
    internal virtual long Sync(SafeFileHandle file) => Answer(Libc.FDataSync(file));

    /// <summary>copy_file_range(2).</summary>
    internal virtual long Copy(SafeFileHandle source, long sourceOffset, SafeFileHandle destination, long destinationOffset, long length)
    {
        try
        {
            return Answer(Libc.CopyFileRange(source, ref sourceOffset, destination, ref destinationOffset, (nuint)length, 0));
        }
        catch (EntryPointNotFoundException)
        {
            return -Libc.ENOSYSLinux;
        }
    }

    /// <summary>poll(2) without waiting: whether a read or write would not block. Errors and hang-ups count as ready: the call itself tells.</summary>
    internal virtual bool IsReady(SafeFileHandle file, short events)
    {
        bool held = false;
        try
        {
            file.DangerousAddRef(ref held);
            Libc.PollDescriptor descriptor = new() { Descriptor = (int)file.DangerousGetHandle(), Events = events };
            return Libc.Poll(&descriptor, 1, 0) > 0;
        }
        finally
        {
            if (held)
            {
                file.DangerousRelease();
            }
        }
    }

    /// <summary>fcntl(2): sets O_NONBLOCK on an open file description that is this file's alone. Linux only: elsewhere the variable argument is passed another way.</summary>
    internal virtual bool TrySetNonBlocking(SafeFileHandle file)
        => OperatingSystem.IsLinux() && Libc.FCntl(file, Libc.F_GETFL, 0) is int flags and >= 0 && Libc.FCntl(file, Libc.F_SETFL, flags | Libc.O_NONBLOCKLinux) >= 0;

    /// <summary>fcntl(2): whether the file was opened with O_DIRECT.</summary>
    internal virtual bool IsDirect(SafeFileHandle file)
        => OperatingSystem.IsLinux() && Libc.FCntl(file, Libc.F_GETFL, 0) is int flags and >= 0 && (flags & Libc.O_DIRECTLinux) != 0;

    private static long Answer(long result) => result >= 0 ? result : -Marshal.GetLastPInvokeError();
}
