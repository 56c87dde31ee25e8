using System.Runtime.CompilerServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Interop;

namespace Pipelines.File.Backends;

/// <summary>
/// Unix. A read is tried without waiting (RWF_NOWAIT) on the caller's thread, which finishes it there when the page cache has the data; what has to wait becomes
/// a work item of the thread pool. Files that can stay empty for ever (FIFOs, terminals, sockets) wait in <see cref="DescriptorPoller"/> and hold no thread.
/// </summary>
internal sealed unsafe class ThreadPoolBackend : FileBackend
{
    // The most that one copy_file_range moves, bytes: a cancellation is noticed between two of them.
    private const long MaxCopyBytes = 16 * 1024 * 1024;

    private readonly UnixCalls _calls;

    // Whether the file system of this file knows RWF_NOWAIT. Written by whoever performs the one operation under way; a property of this file, not of the process.
    private bool _triesReads = OperatingSystem.IsLinux();
    private bool _triesWrites;
    private bool _copies = OperatingSystem.IsLinux();

    internal ThreadPoolBackend(SafeFileHandle handle, string? path, FileShape shape, UnixCalls? calls = null)
        : base(handle, path, shape)
    {
        _calls = calls ?? UnixCalls.Default;

        // Only where a write can wait for ever is trying worth a call; ext4 and others do not know it for buffered writes.
        _triesWrites = _triesReads && !shape.CanSeek;
    }

    internal override FilePipeBackend Kind => FilePipeBackend.ThreadPool;

    // The kernel would take IOV_MAX: 1024. As many as operations are pooled with, so that the smallest segments cost no memory either.
    internal override int MaxBuffersPerOperation => FileOperation.MaxPooledBuffers;

    internal override bool TryPerform(FileOperation operation)
    {
        if (operation.Kind != FileOperationKind.Read || !_triesReads)
        {
            return false;
        }

        try
        {
            return TryRead(operation);
        }
        catch (ObjectDisposedException e)
        {
            // The caller has closed the handle under us.
            operation.Finish(e);
            return true;
        }
    }

    internal override void Start(FileOperation operation)
    {
        operation.WorkItemBackend = this;
        FilePipeMetrics.HandedOver(operation.Kind);
        bool? isWaiting = CanSeek || operation.Kind is not (FileOperationKind.Read or FileOperationKind.Write) ? null : TryWait(operation);
        if (isWaiting is null)
        {
            ThreadPool.UnsafeQueueUserWorkItem(operation, preferLocal: false);
        }
        else if (isWaiting is false)
        {
            ReportCanceled(operation);
        }
    }

    internal override bool CanBlock => CanSeek;

    internal override void Perform(FileOperation operation) => TryPerformWaiting(operation);

    internal override void TryCancel(FileOperation operation, IFileOperationOwner owner)
    {
        if (!CanSeek && DescriptorPoller.Shared.TryCancel(operation, owner))
        {
            ReportCanceled(operation);
        }
    }

    internal override bool CanCopyTo(FileBackend destination)
        => _copies && Shape.IsRegular && CanSeek && destination is ThreadPoolBackend { Shape: { IsRegular: true, CanSeek: true } };

    /// <summary>The descriptor that the operation waited for can be read or written.</summary>
    internal static void OnReady(FileOperation operation) => ThreadPool.UnsafeQueueUserWorkItem(operation, preferLocal: false);

    /// <summary>The work item: performs the operation, waiting if it must, and goes on for as long as the owner has more.</summary>
    internal void Execute(FileOperation operation)
    {
        do
        {
            if (!TryPerformWaiting(operation))
            {
                return;
            }
        }
        while (operation.Owner!.OnCompleted(operation));
    }

    private void ReportCanceled(FileOperation operation)
    {
        operation.FinishCanceled();
        if (operation.Owner!.OnCompleted(operation))
        {
            Start(operation);
        }
    }

    /// <summary>Whether it now waits in poll(2): not, where it was canceled; <see langword="null"/> where there is nothing to wait for.</summary>
    private bool? TryWait(FileOperation operation)
    {
        try
        {
            return _calls.IsReady(Handle, EventsOf(operation)) ? null : DescriptorPoller.Shared.TryAdd(operation, Handle, EventsOf(operation));
        }
        catch (Exception e) when (e is IOException or ObjectDisposedException)
        {
            // No descriptor for the wake-up pipe, or none of the file: the work item meets the same and reports it.
            return null;
        }
    }

    private static short EventsOf(FileOperation operation) => operation.Kind == FileOperationKind.Read ? Libc.POLLIN : Libc.POLLOUT;

    /// <summary><see langword="false"/>: the read has to wait, or the plain call has to be asked.</summary>
    private bool TryRead(FileOperation operation)
    {
        // At or past the length that the file is known to have there is nothing to wait for, and the plain call is the one whose 0 is the end.
        bool isAtEnd = CanSeek && Shape.Length > 0 && operation.Offset >= Shape.Length;
        long result = isAtEnd ? ReadPlain(operation) : ReadNoWait(operation);
        if (result > 0 || (isAtEnd && result == 0))
        {
            operation.Finish(result);
            return true;
        }

        if (result == 0)
        {
            // Linux 5.9 and 5.10 answer 0 where the end is not (preadv2(2), BUGS): only the plain call is believed.
            return false;
        }

        int errno = (int)-result;
        if (errno != Libc.EAGAIN && !isAtEnd)
        {
            if (IsUnknownCall(result))
            {
                _triesReads = false;
            }

            // Any other error may be spurious (an EIO has been seen): the plain call is asked before it is believed.
            FilePipeMetrics.FellBack("preadv2", errno);
        }

        return false;
    }

    /// <summary>Performs the operation, waiting as long as it takes. <see langword="false"/>: the descriptor is not ready, and <see cref="OnReady"/> comes later.</summary>
    private bool TryPerformWaiting(FileOperation operation)
    {
        try
        {
            long result = operation.Kind switch
            {
                FileOperationKind.Read => CanSeek ? ReadPlain(operation) : ReadReady(operation),
                FileOperationKind.Write => CanSeek ? WritePlain(operation) : WriteReady(operation),
                FileOperationKind.Sync => SyncData(),
                _ => CopyRange(operation),
            };
            if (result >= 0)
            {
                operation.Finish(result);
            }
            else if (result == -Libc.EAGAIN && operation.Kind is FileOperationKind.Read or FileOperationKind.Write)
            {
                if (DescriptorPoller.Shared.TryAdd(operation, Handle, EventsOf(operation)))
                {
                    return false;
                }

                operation.FinishCanceled();
            }
            else if (result == -Libc.EPIPE && operation.Kind == FileOperationKind.Read)
            {
                operation.Finish(0);
            }
            else
            {
                operation.Finish(FileErrors.FromErrno((int)-result, Path));
            }
        }
        catch (Exception e) when (e is ObjectDisposedException or IOException or NotSupportedException)
        {
            // The caller has closed the handle under us, or there is no descriptor for the wake-up pipe.
            operation.Finish(FileErrors.WithPath(e, Path));
        }

        return true;
    }

    // A file that cannot seek: poll(2) has said that it is ready, but somebody else may have been faster, so still without waiting where that is known.
    private long ReadReady(FileOperation operation)
    {
        if (_triesReads)
        {
            long result = ReadNoWait(operation);
            if (result > 0 || result == -Libc.EAGAIN)
            {
                return result;
            }

            if (IsUnknownCall(result))
            {
                _triesReads = false;
                FilePipeMetrics.FellBack("preadv2", (int)-result);
            }
        }

        return _calls.IsReady(Handle, Libc.POLLIN) ? ReadPlain(operation) : -Libc.EAGAIN;
    }

    private long WriteReady(FileOperation operation)
    {
        if (_triesWrites)
        {
            long result = Call(operation, CallKind.WriteNoWait);
            if (!IsUnknownCall(result))
            {
                return result;
            }

            _triesWrites = false;
            FilePipeMetrics.FellBack("pwritev2", (int)-result);
        }

        return _calls.IsReady(Handle, Libc.POLLOUT) ? Call(operation, CallKind.WriteSome) : -Libc.EAGAIN;
    }

    /// <summary>Whether the system, or this file's part of it, refuses the call that does not wait as such: a kernel or file system without it, a seccomp filter.</summary>
    private static bool IsUnknownCall(long result)
        => result is -Libc.ENOSYSLinux or -Libc.EOPNOTSUPPLinux or -Libc.EPERM or -Libc.EINVAL or -Libc.ESPIPE;

    private long ReadNoWait(FileOperation operation) => Call(operation, CallKind.ReadNoWait);

    private long ReadPlain(FileOperation operation) => Call(operation, CallKind.Read);

    private long WritePlain(FileOperation operation) => Call(operation, CallKind.Write);

    private long SyncData()
    {
        if (!OperatingSystem.IsLinux())
        {
            // fsync(2) of macOS stops at the drive's cache; the runtime knows how to go further.
            RandomAccess.FlushToDisk(Handle);
            return 0;
        }

        long result;
        do
        {
            result = _calls.Sync(Handle);
        }
        while (result == -Libc.EINTR);

        // A FIFO, a terminal or a read-only file system has nothing to sync (fdatasync(2): EINVAL, EROFS).
        return result is -Libc.EINVAL or -Libc.EROFS ? 0 : result;
    }

    private long CopyRange(FileOperation operation)
    {
        long result;
        do
        {
            result = _calls.Copy(Handle, operation.Offset, operation.Destination!.Handle, operation.DestinationOffset, Math.Min(operation.Length, MaxCopyBytes));
        }
        while (result == -Libc.EINTR);

        if (result < 0)
        {
            // EXDEV, EINVAL, EOPNOTSUPP, ENOSYS, EBADF (append-only), ETXTBSY, EPERM …: the ordinary way tells what is really wrong, if anything is.
            _copies = false;
            FilePipeMetrics.FellBack("copy_file_range", (int)-result);
            return 0;
        }

        return result;
    }

    [SkipLocalsInit]
    private long Call(FileOperation operation, CallKind kind)
    {
        operation.Pin();
        ReadOnlySpan<TransferBuffer> buffers = operation.Buffers;
        int count = Math.Min(buffers.Length, Libc.IOV_MAX);
        Libc.IoVector* vectors = stackalloc Libc.IoVector[count];
        for (int i = 0; i < count; i++)
        {
            vectors[i].Base = buffers[i].Address;
            vectors[i].Length = buffers[i].Memory.Length;
        }

        if (kind == CallKind.WriteSome)
        {
            count = 1;
            vectors[0].Length = Math.Min(vectors[0].Length, Libc.PipeBuf);
        }

        long offset = CanSeek ? operation.Offset : -1;
        long result;
        do
        {
            result = kind switch
            {
                CallKind.ReadNoWait => _calls.ReadNoWait(Handle, vectors, count, offset),
                CallKind.Read => _calls.Read(Handle, vectors, count, offset),
                CallKind.WriteNoWait => _calls.WriteNoWait(Handle, vectors, count, offset),
                _ => _calls.Write(Handle, vectors, count, offset),
            };
        }
        while (result == -Libc.EINTR);

        return result;
    }

    private enum CallKind
    {
        ReadNoWait,
        Read,
        WriteNoWait,
        Write,
        WriteSome,
    }
}
