using Pipelines.File.Diagnostics;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// Linux: a read is tried without waiting (RWF_NOWAIT) on the caller's thread, and finishes there if the page cache has the data. A call
/// that has to wait is performed by one of the <see cref="WaitingThreads"/>. Files that may have no data for ever (FIFOs, terminals,
/// sockets) wait in <see cref="DescriptorPoller"/> and hold no thread.
/// </summary>
internal sealed unsafe class UnixFile : OpenedFile
{
    private readonly UnixCalls _calls;

    // A FIFO that was opened by path has a file description of its own, so O_NONBLOCK can be set on it: its calls never wait, and transfer
    // as much as there is room for.
    private readonly bool _isNonBlocking;

    // Whether the kernel and this file's file system support RWF_NOWAIT: a property of the file, not of the process. Written by whoever
    // performs the one running operation.
    private bool _triesNoWait = true;

    private long _endOfLastWrite = -1;

    // The folder of a new file, if it was opened in advance.
    private SafeFileHandle? _folder;

    // For FileCaching.DropBehind. Owned by whoever performs the one running operation.
    private PagesBehind? _behind;

    // The file offset where the end was last seen; long.MaxValue: unknown. A plain call there does not wait, because there is nothing to
    // read. Owned by whoever performs the one running operation.
    private long _knownEnd;

    internal UnixFile(SafeFileHandle handle, string? path, FileProperties properties, UnixCalls? calls = null)
        : base(handle, path, properties)
    {
        _calls = calls ?? UnixCalls.Default;
        if (!properties.CanSeek)
        {
            DescriptorPoller.Shared.Prepare();
        }

        _isNonBlocking = path is not null && properties.IsFifo && _calls.TrySetNonBlocking(handle);
        _knownEnd = properties.CanSeek && properties.Length > 0 ? properties.Length : long.MaxValue;
    }

    internal override FilePipeBackend Kind => FilePipeBackend.ThreadPool;

    // Whether writes use writev(2) instead of pwritev(2).
    private bool WritesSequentially => CanSeek && (Appends || SharesPosition);

    internal override long EndOfLastWrite => _endOfLastWrite;

    // The kernel takes 1024 (IOV_MAX). This is the number that a pooled request keeps, so that the smallest segments allocate nothing
    // either.
    internal override int MaxBuffersPerOperation => FileRequest.MaxPooledBuffers;

    // A write to a terminal that is stopped (Ctrl-S), or that nobody reads, blocks if it is larger than the room. poll(2) does not report
    // the room, and terminals do not support RWF_NOWAIT.
    internal override bool EndsWrites => !Properties.IsCharacterDevice;

    internal override bool TryPerform(FileRequest operation, bool mayWait)
    {
        if (mayWait && CanSeek)
        {
            // Calls on a file that can seek end by themselves.
            return TryFinish(operation);
        }

        return operation.Kind == FileRequestKind.Read && _triesNoWait && TryRead(operation);
    }

    internal override void Start(FileRequest operation)
    {
        bool isReady = true;
        bool waits = false;
        try
        {
            isReady = CanSeek || operation.Kind is not (FileRequestKind.Read or FileRequestKind.Write)
                || _calls.IsReady(Handle, EventsOf(operation));
            waits = !isReady && TryWait(operation);
        }
        catch (Exception e) when (e is IOException or ObjectDisposedException)
        {
            // The system has no thread to wait with, or the file is closed: performing the operation meets and reports the same error.
            isReady = true;
        }

        if (isReady)
        {
            operation.Queue();
        }
        else if (!waits)
        {
            operation.Complete();
        }
    }

    internal override void Cancel(FileRequest operation, int generation)
    {
        if (!CanSeek && DescriptorPoller.Shared.TryCancel(operation, generation))
        {
            operation.FinishCanceled();
            operation.Complete();
        }
    }

    internal override void OpenFolder()
    {
        if (System.IO.Path.GetDirectoryName(FileProperties.PathOf(Handle) ?? Path) is { } folder)
        {
            _folder = FolderSync.Open(_calls, folder);
        }
    }

    internal override void SyncFolder()
    {
        string? path = FileProperties.PathOf(Handle) ?? Path;
        if (_folder is null)
        {
            FolderSync.Perform(_calls, path);
        }
        else
        {
            FolderSync.Perform(_calls, _folder, System.IO.Path.GetDirectoryName(path) ?? "");
        }
    }

    internal override Exception? TellCloseError()
    {
        try
        {
            long answer = Properties.IsRegular ? _calls.CloseCopy(Handle) : 0;
            return answer < 0 ? FileErrors.FromErrno((int)-answer, Path) : null;
        }
        catch (ObjectDisposedException)
        {
            // The caller has closed the handle, and so got the error.
            return null;
        }
    }

    internal override void DropBehind(bool isWriter)
        => _behind = CanSeek && Properties.IsRegular ? new PagesBehind(_calls, Handle, Properties.Length, isWriter) : null;

    internal override void Release(bool closeHandle)
    {
        _behind?.Release();
        _folder?.Dispose();
        base.Release(closeHandle);
    }

    internal override void Perform(FileRequest operation)
    {
        if (TryFinish(operation))
        {
            operation.Complete();
        }
    }

    // A call that never waits is made on the poller's thread.
    internal override void OnReady(FileRequest operation)
    {
        if (_isNonBlocking)
        {
            Perform(operation);
        }
        else
        {
            operation.Queue();
        }
    }

    /// <summary>Makes the operation wait in the poller. Returns <see langword="false"/> if it was canceled, which is recorded.</summary>
    private bool TryWait(FileRequest operation)
    {
        bool waits = DescriptorPoller.Shared.TryAdd(operation, Handle, EventsOf(operation));
        if (!waits)
        {
            operation.FinishCanceled();
        }

        return waits;
    }

    private static short EventsOf(FileRequest operation) => operation.Kind == FileRequestKind.Read ? Libc.POLLIN : Libc.POLLOUT;

    /// <summary>
    /// Tries to read on the caller's thread. Returns <see langword="false"/> if the read has to wait, or only the plain call can tell.
    /// </summary>
    private bool TryRead(FileRequest operation)
    {
        // At the known end, and for a non-blocking FIFO, the plain call does not wait, and its 0 means the end.
        bool isPlain = _isNonBlocking || operation.Offset >= _knownEnd;
        long result;
        try
        {
            result = isPlain ? CallPlain(operation) : Call(operation, mayWait: false);
            if (result > 0 || (isPlain && result == 0) || IsBelieved(result))
            {
                End(operation, result);
                return true;
            }
        }
        catch (ObjectDisposedException e)
        {
            // The caller has closed the handle under us.
            operation.Finish(e);
            return true;
        }

        // Linux 5.9 and 5.10 may return 0 before the end (preadv2(2), BUGS): only a 0 of the plain call counts.
        if (!isPlain && result != -Libc.EAGAIN)
        {
            NoteError(operation, result);
        }

        return false;
    }

    /// <summary>
    /// Performs the operation, however long that takes. Returns <see langword="false"/> if the descriptor is not ready, and the operation
    /// waits in the poller.
    /// </summary>
    private bool TryFinish(FileRequest operation)
    {
        if (operation.Kind == FileRequestKind.Step)
        {
            operation.PerformStep();
            return true;
        }

        try
        {
            long result = operation.Kind == FileRequestKind.Sync ? _calls.SyncData(Handle, Properties)
                : CanSeek || _isNonBlocking ? CallPlain(operation)
                : CallReady(operation);
            if (result == -Libc.EAGAIN && !CanSeek)
            {
                return !TryWait(operation);
            }

            End(operation, result);
        }
        catch (Exception e) when (e is ObjectDisposedException or IOException or NotSupportedException)
        {
            // The caller has closed the handle under us, or the system has no descriptor or thread to wait with.
            operation.Finish(FileErrors.WithPath(e, Path));
        }

        return true;
    }

    /// <summary>Records the result of the call.</summary>
    private void End(FileRequest operation, long result)
    {
        if (result >= 0)
        {
            operation.Finish(result);
        }
        else if (result == -Libc.EPIPE && operation.Kind == FileRequestKind.Read)
        {
            operation.Finish(0);
        }
        else
        {
            operation.Finish(FileErrors.FromErrno((int)-result, Path));
        }
    }

    /// <summary>
    /// For a file that cannot seek and whose description others may use: poll(2) has reported it as ready, but another process may have
    /// been faster. So the call does not wait, if the file supports that.
    /// </summary>
    private long CallReady(FileRequest operation)
    {
        if (_triesNoWait)
        {
            long result = Call(operation, mayWait: false);
            if (result > 0 || result == -Libc.EAGAIN || IsBelieved(result))
            {
                return result;
            }

            NoteError(operation, result);
        }

        return _calls.IsReady(Handle, EventsOf(operation)) ? CallPlain(operation) : -Libc.EAGAIN;
    }

    /// <summary>
    /// Notes an error of the call that does not wait. It may be spurious (an EIO has been seen), so the plain call decides.
    /// </summary>
    private void NoteError(FileRequest operation, long result)
    {
        _triesNoWait &= !IsUnknownCall(result);
        if (result < 0)
        {
            FilePipeMetrics.FellBack(operation.Kind == FileRequestKind.Read ? "preadv2" : "pwritev2", (int)-result);
        }
    }

    /// <summary>
    /// Whether the result is an error of a file that cannot seek. A socket reports an error once (ECONNRESET), and then the end, so no
    /// second call is made.
    /// </summary>
    private bool IsBelieved(long result) => result < 0 && result != -Libc.EAGAIN && !CanSeek && !IsUnknownCall(result);

    /// <summary>Whether the kernel, the file system or a seccomp filter refuses RWF_NOWAIT or RWF_DONTCACHE as such.</summary>
    internal static bool IsUnknownCall(long result)
        => result is -Libc.ENOSYS or -Libc.EOPNOTSUPP or -Libc.EPERM or -Libc.EINVAL or -Libc.ESPIPE;

    /// <summary>Makes the plain call. It may wait, and only its 0 means the end of the file.</summary>
    private long CallPlain(FileRequest operation)
    {
        long result = Call(operation, mayWait: true);
        if (operation.Kind == FileRequestKind.Write)
        {
            // writev(2) has moved the position of the open file behind its bytes, wherever it has written them.
            _endOfLastWrite = WritesSequentially && result > 0 ? Libc.LSeek(Handle, 0, SeekOrigin.Current) : _endOfLastWrite;
            return result;
        }

        operation.IsShortAtEnd = CanSeek;
        if (CanSeek && result >= 0)
        {
            // If the file has grown, the new end is unknown.
            _knownEnd = result == 0 ? operation.Offset : operation.Offset >= _knownEnd ? long.MaxValue : _knownEnd;
        }

        return result;
    }

    [SkipLocalsInit]
    private long Call(FileRequest operation, bool mayWait)
    {
        bool isRead = operation.Kind == FileRequestKind.Read;
        int count = Math.Min(operation.BufferCount, Libc.IOV_MAX);
        Libc.IoVector* vectors = stackalloc Libc.IoVector[count];
        for (int i = 0; i < count; i++)
        {
            ref readonly TransferBuffer buffer = ref operation.BufferAt(i);
            vectors[i].Base = buffer.Address;
            vectors[i].Length = buffer.Memory.Length;
        }

        if (mayWait && !isRead && !CanSeek && !_isNonBlocking)
        {
            // A write of this size does not block if poll(2) has reported the file as writable.
            count = 1;
            vectors[0].Length = Math.Min(vectors[0].Length, Libc.PIPE_BUF);
        }

        long offset = CanSeek && (isRead || !WritesSequentially) ? operation.Offset : -1;
        long result = LeavePages(operation, out bool isUncached);
        if (result < 0)
        {
            return result;
        }

        do
        {
            int flags = (mayWait ? 0 : Libc.RWF_NOWAIT) | (isUncached ? Libc.RWF_DONTCACHE : 0);
            result = isRead ? _calls.Read(Handle, vectors, count, offset, flags) : _calls.Write(Handle, vectors, count, offset, flags);
            if (isUncached && IsUnknownCall(result))
            {
                _behind!.GiveUpFlag((int)-result);
                long lost = LeavePages(operation, out isUncached);
                result = lost < 0 ? lost : -Libc.EINTR;
            }
        }
        while (result == -Libc.EINTR);

        return result;
    }
    /// <summary>Lets go of the pages that the last calls have left (<see cref="PagesBehind.Enter"/>).</summary>
    private long LeavePages(FileRequest operation, out bool isUncached)
    {
        isUncached = false;
        return _behind is null ? 0 : _behind.Enter(operation.Offset, operation.Length, out isUncached);
    }
}
