using System.Runtime.CompilerServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Interop;
using Pipelines.File.Waiting;

namespace Pipelines.File.Backends;

/// <summary>
/// Unix. A read is tried without waiting (RWF_NOWAIT) on the caller's thread, which finishes it there when the page cache has the data; what has to wait is
/// performed by one of the <see cref="WaitingThreads"/>. Files that can stay empty for ever (FIFOs, terminals, sockets) wait in <see cref="DescriptorPoller"/> and hold no thread.
/// </summary>
internal sealed unsafe class ThreadPoolBackend : FileBackend
{
    // The most that one copy_file_range moves, bytes: a cancellation is noticed between two of them.
    private const long MaxCopyBytes = 16 * 1024 * 1024;

    // A multiple of the block of every device that is common, bytes (open(2), O_DIRECT).
    private const int DirectBlock = 4096;

    private readonly UnixCalls _calls;

    // A FIFO that was opened by path has a file description of its own, which may be set to O_NONBLOCK: its calls never wait, and move as much as there is room for.
    private readonly bool _isNonBlocking;

    // open(2), O_DIRECT: RWF_NOWAIT waits for the device there.
    private readonly bool _isDirect;

    // Whether the file system of this file knows RWF_NOWAIT. Written by whoever performs the one operation under way; a property of this file, not of the process.
    private bool _triesReads = OperatingSystem.IsLinux();
    private bool _triesWrites;
    private bool _copies = OperatingSystem.IsLinux();

    private long _endOfLastWrite = -1;

    // Where the end of the file was last seen, owned as the above: there a plain call does not wait, as there is nothing to wait for.
    private long _knownEnd;

    internal ThreadPoolBackend(SafeFileHandle handle, string? path, FileProperties properties, UnixCalls? calls = null)
        : base(handle, path, properties)
    {
        _calls = calls ?? UnixCalls.Default;
        _isNonBlocking = path is not null && properties.IsFifo && _calls.TrySetNonBlocking(handle);
        _isDirect = path is null && properties.CanSeek && _calls.IsDirect(handle);
        _triesReads &= !_isDirect;

        // Only where a write can wait for ever is trying worth a call; ext4 and others do not know it for buffered writes.
        _triesWrites = _triesReads && !properties.CanSeek && !_isNonBlocking;
        _knownEnd = properties.CanSeek && properties.Length > 0 ? properties.Length : long.MaxValue;
    }

    /// <summary>What becomes of an operation that may have to wait for its descriptor.</summary>
    private enum Readiness
    {
        Ready,
        Waiting,
        Canceled,
    }

    internal override FilePipeBackend Kind => FilePipeBackend.ThreadPool;

    // writev(2) instead of pwritev(2).
    private bool WritesSequentially => CanSeek && (Appends || SharesPosition);

    internal override long EndOfLastWrite => _endOfLastWrite;

    // The kernel would take IOV_MAX: 1024. As many as operations are pooled with, so that the smallest segments cost no memory either.
    internal override int MaxBuffersPerOperation => FileOperation.MaxPooledBuffers;

    // A terminal that is stopped (Ctrl-S), or that nobody reads, holds a write of more than it has room for, which poll(2) does not tell, and knows no RWF_NOWAIT.
    internal override bool EndsWrites => !Properties.IsCharacterDevice;

    internal override int ReadGranularity => _isDirect ? DirectBlock : 1;

    internal override FileOperation Rent(IFileOperationOwner owner) => ThreadPoolOperation.Rent(this, owner);

    internal override bool TryPerform(FileOperation operation, bool mayWait)
    {
        if (mayWait && CanSeek)
        {
            // Calls on a file that can seek end by themselves.
            _ = Perform((ThreadPoolOperation)operation);
            return true;
        }

        if (operation.Kind != FileOperationKind.Read || !(_triesReads || _isNonBlocking))
        {
            return false;
        }

        ((ThreadPoolOperation)operation).TriedGeneration = operation.Generation;
        return TryRead(operation);
    }

    internal override void Start(FileOperation operation)
    {
        ThreadPoolOperation started = (ThreadPoolOperation)operation;
        FilePipeMetrics.HandedOver(operation.Kind);
        if (operation.Kind == FileOperationKind.Read && CanSeek)
        {
            // Without a first try that has begun to fetch the bytes (RWF_NOWAIT does, before it answers EAGAIN) the call waits for all of it.
            operation.NeedsOwnThread = !_triesReads;

            // A read ahead.
            started.TriesFirst = _triesReads && started.TriedGeneration != operation.Generation;
        }

        switch (CanSeek || operation.Kind is not (FileOperationKind.Read or FileOperationKind.Write) ? Readiness.Ready : WaitUntilReady(started))
        {
            case Readiness.Ready:
                started.Queue();
                break;
            case Readiness.Canceled:
                ReportCanceled(started);
                break;
        }
    }

    internal override void Cancel(FileOperation operation, int generation)
    {
        if (!CanSeek && DescriptorPoller.Shared.TryCancel(((ThreadPoolOperation)operation).Wait, generation))
        {
            ReportCanceled((ThreadPoolOperation)operation);
        }
    }

    internal override bool CanCopyTo(FileBackend destination)
        => _copies && Properties.IsRegular && CanSeek && destination is ThreadPoolBackend { WritesSequentially: false, Properties: { IsRegular: true, CanSeek: true } };

    internal override void SyncFolder() => FolderSync.Perform(_calls, FileProperties.PathOf(Handle) ?? Path);

    /// <summary>Performs the operation, waiting if it must. <see langword="true"/>: the owner has more.</summary>
    internal bool PerformAndReport(ThreadPoolOperation operation)
    {
        bool tries = operation.TriesFirst;
        operation.TriesFirst = false;
        if (tries && !TryRead(operation))
        {
            operation.NeedsOwnThread = !_triesReads;
            return true;
        }

        if (!tries && !Perform(operation))
        {
            return false;
        }

        operation.WasTried = tries;
        if (!operation.Report())
        {
            return false;
        }

        OnSetUpAgain(operation);
        return true;
    }

    /// <summary>The owner has set it up again when it was reported.</summary>
    internal void OnSetUpAgain(ThreadPoolOperation operation)
    {
        bool isRead = operation.Kind == FileOperationKind.Read && CanSeek;

        // Where the last read did not have to wait the next one most likely need not, either; a thread that has waited anyway goes on.
        operation.TriesFirst = isRead && _triesReads && operation.WasTried;
        operation.NeedsOwnThread |= isRead && !_triesReads;
    }

    /// <summary>The descriptor that the operation waited for is ready. On the poller's thread.</summary>
    internal void OnReady(ThreadPoolOperation operation)
    {
        // A call that never waits needs no other thread; whatever comes after it does, as others wait for this one.
        if (!_isNonBlocking || PerformAndReport(operation))
        {
            operation.Queue();
        }
    }

    private void ReportCanceled(ThreadPoolOperation operation)
    {
        operation.FinishCanceled();
        if (operation.Owner!.OnCompleted(operation))
        {
            Start(operation);
        }
    }

    private Readiness WaitUntilReady(ThreadPoolOperation operation)
    {
        try
        {
            return _calls.IsReady(Handle, EventsOf(operation)) ? Readiness.Ready
                : DescriptorPoller.Shared.TryAdd(operation.Wait, Handle, EventsOf(operation)) ? Readiness.Waiting
                : Readiness.Canceled;
        }
        catch (Exception e) when (e is IOException or ObjectDisposedException)
        {
            // The system has no descriptor or thread to wait with, or the file is closed: who performs the operation meets the same and reports it.
            return Readiness.Ready;
        }
    }

    private static short EventsOf(FileOperation operation) => operation.Kind == FileOperationKind.Read ? Libc.POLLIN : Libc.POLLOUT;

    /// <summary><see langword="false"/>: the read has to wait, or the plain call has to be asked.</summary>
    private bool TryRead(FileOperation operation)
    {
        try
        {
            return TryReadOpen(operation);
        }
        catch (ObjectDisposedException e)
        {
            // The caller has closed the handle under us.
            operation.Finish(e);
            return true;
        }
    }

    private bool TryReadOpen(FileOperation operation)
    {
        // Where the end was seen last, and in a FIFO that never waits, the plain call is the one whose 0 is the end.
        bool isPlain = _isNonBlocking || operation.Offset >= _knownEnd;
        long result = isPlain ? ReadPlain(operation) : Call(operation, CallKind.ReadNoWait);
        if (result > 0 || (isPlain && result == 0))
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
        if (errno != Libc.EAGAIN && !isPlain)
        {
            if (IsUnknownCall(result))
            {
                _triesReads = false;
            }

            // Any other error may be spurious (an EIO has been seen): the plain call is asked before it is believed.
            operation.FellBack("preadv2", errno);
        }

        return false;
    }

    /// <summary>Performs the operation, waiting as long as it takes. <see langword="false"/>: the descriptor is not ready, and the operation waits in the poller.</summary>
    private bool Perform(ThreadPoolOperation operation)
    {
        if (operation.Kind == FileOperationKind.Step)
        {
            operation.PerformStep();
            return true;
        }

        try
        {
            long result = operation.Kind switch
            {
                FileOperationKind.Read => CanSeek || _isNonBlocking ? ReadPlain(operation) : ReadReady(operation),
                FileOperationKind.Write => WritesSequentially ? WriteSequentially(operation)
                    : CanSeek || _isNonBlocking ? Call(operation, CallKind.Write) : WriteReady(operation),
                FileOperationKind.Sync => SyncData(),
                _ => CopyRange(operation),
            };
            if (result >= 0)
            {
                operation.Finish(result);
            }
            else if (result == -Libc.EAGAIN && !CanSeek && operation.Kind is FileOperationKind.Read or FileOperationKind.Write)
            {
                if (DescriptorPoller.Shared.TryAdd(operation.Wait, Handle, EventsOf(operation)))
                {
                    return false;
                }

                operation.FinishCanceled();
            }
            else if (result == -Libc.EPIPE && operation.Kind == FileOperationKind.Read)
            {
                operation.Finish(0);
            }
            else if (result == -Libc.EINVAL && _isDirect)
            {
                operation.Finish(new IOException(
                    $"The file is open for direct I/O (O_DIRECT), which needs memory, offsets and lengths that are multiples of the device's block, for example by a Pool of aligned memory : '{Path}'",
                    FileErrors.FromErrno(Libc.EINVAL, Path)));
            }
            else
            {
                operation.Finish(FileErrors.FromErrno((int)-result, Path));
            }
        }
        catch (Exception e) when (e is ObjectDisposedException or IOException or NotSupportedException)
        {
            // The caller has closed the handle under us, or the system has no descriptor or thread to wait with.
            operation.Finish(FileErrors.WithPath(e, Path));
        }

        return true;
    }

    // A file that cannot seek and is not ours: poll(2) has said that it is ready, but somebody else may have been faster, so still without waiting where that is known.
    private long ReadReady(FileOperation operation)
    {
        if (_triesReads)
        {
            long result = Call(operation, CallKind.ReadNoWait);
            if (result > 0 || result == -Libc.EAGAIN)
            {
                return result;
            }

            if (IsUnknownCall(result))
            {
                _triesReads = false;
                operation.FellBack("preadv2", (int)-result);
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
            operation.FellBack("pwritev2", (int)-result);
        }

        return _calls.IsReady(Handle, Libc.POLLOUT) ? Call(operation, CallKind.WriteSome) : -Libc.EAGAIN;
    }

    /// <summary>One writev(2), which moves the position of the open file to behind its bytes, wherever it has put them.</summary>
    private long WriteSequentially(FileOperation operation)
    {
        long result = Call(operation, CallKind.Write);
        if (result > 0)
        {
            _endOfLastWrite = Libc.LSeek(Handle, 0, Libc.SEEK_CUR);
        }

        return result;
    }

    /// <summary>Whether the system, or this file's part of it, refuses the call that does not wait as such: a kernel or file system without it, a seccomp filter.</summary>
    private static bool IsUnknownCall(long result)
        => result is -Libc.ENOSYSLinux or -Libc.EOPNOTSUPPLinux or -Libc.EPERM or -Libc.EINVAL or -Libc.ESPIPE;

    /// <summary>The call that may wait, and the only one whose 0 is the end of the file.</summary>
    private long ReadPlain(FileOperation operation)
    {
        long result = Call(operation, CallKind.Read);
        if (CanSeek && result >= 0)
        {
            // Where the file has grown nobody knows the new end yet.
            _knownEnd = result == 0 ? operation.Offset : operation.Offset >= _knownEnd ? long.MaxValue : _knownEnd;
        }

        return result;
    }

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
            operation.FellBack("copy_file_range", (int)-result);
            return 0;
        }

        return result;
    }

    [SkipLocalsInit]
    private long Call(FileOperation operation, CallKind kind)
    {
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

        long offset = CanSeek && !(WritesSequentially && kind == CallKind.Write) ? operation.Offset : -1;
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
