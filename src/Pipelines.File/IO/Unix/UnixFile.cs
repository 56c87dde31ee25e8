using Pipelines.File.Diagnostics;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// Linux. A read is tried without waiting (RWF_NOWAIT) on the caller's thread, which finishes it there when the page cache has the data;
/// what has to wait is performed by one of the <see cref="WaitingThreads"/>. Files that can stay empty for ever (FIFOs, terminals, sockets)
/// wait in <see cref="DescriptorPoller"/> and hold no thread.
/// </summary>
internal sealed unsafe class UnixFile : OpenedFile
{
    private readonly UnixCalls _calls;

    // A FIFO that was opened by path has a file description of its own, which may be set to O_NONBLOCK: its calls never wait, and move as
    // much as there is room for.
    private readonly bool _isNonBlocking;

    // open(2), O_DIRECT: RWF_NOWAIT waits for the device there.
    private readonly bool _isDirect;

    // Whether the file system of this file knows RWF_NOWAIT. Written by whoever performs the one operation under way; a property of this
    // file, not of the process.
    private bool _triesNoWait;

    private long _endOfLastWrite = -1;

    // The folder of a file that is new, where it was opened beforehand.
    private SafeFileHandle? _folder;

    // FileCaching.DropBehind. Owned by whoever performs the one operation under way.
    private PagesBehind? _behind;

    // Where the end of the file was last seen, owned likewise: there a plain call does not wait, as there is nothing to wait for.
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
        _isDirect = path is null && properties.CanSeek && _calls.IsDirect(handle);
        _triesNoWait = !_isDirect;
        _knownEnd = properties.CanSeek && properties.Length > 0 ? properties.Length : long.MaxValue;
    }

    internal override FilePipeBackend Kind => FilePipeBackend.ThreadPool;

    // writev(2) instead of pwritev(2).
    private bool WritesSequentially => CanSeek && (Appends || SharesPosition);

    internal override long EndOfLastWrite => _endOfLastWrite;

    // The kernel would take IOV_MAX: 1024. As many as operations are pooled with, so that the smallest segments cost no memory either.
    internal override int MaxBuffersPerOperation => FileRequest.MaxPooledBuffers;

    // A terminal that is stopped (Ctrl-S), or that nobody reads, holds a write of more than it has room for, which poll(2) does not tell,
    // and knows no RWF_NOWAIT.
    internal override bool EndsWrites => !Properties.IsCharacterDevice;

    internal override bool IsDirect => _isDirect;

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
            // The system has no thread to wait with, or the file is closed: who performs the operation meets the same and reports it.
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
            // The caller has closed the handle: the system has told whoever did it.
            return null;
        }
    }

    internal override DirectCalls BeginDirect(bool isWriter, bool isOwn) => UnixDirectCalls.Begin(this, _calls, isWriter, isOwn);

    /// <summary>What a call past the page cache fails with that the system refuses.</summary>
    internal static IOException NotWhole(string? path)
        => new(
            "The file is open for direct I/O (O_DIRECT), and the system refuses the call: memory, offset or length is no multiple of what "
            + $"the device asks for : '{path}'",
            FileErrors.FromErrno(Libc.EINVAL, path));

    internal override void DropBehind(bool isWriter)
        => _behind = CanSeek && Properties.IsRegular && !_isDirect ? new PagesBehind(_calls, Handle, Properties.Length, isWriter) : null;

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

    // A call that never waits is made on the poller's thread, as it needs no other.
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

    /// <summary>Waits for the descriptor. <see langword="false"/>: the operation was canceled.</summary>
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

    /// <summary><see langword="false"/>: the read has to wait, or the plain call has to be asked.</summary>
    private bool TryRead(FileRequest operation)
    {
        // Where the end was seen last, and in a FIFO that never waits, the plain call is the one whose 0 is the end.
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

        // Linux 5.9 and 5.10 answer 0 where the end is not (preadv2(2), BUGS): only the plain call is believed.
        if (!isPlain && result != -Libc.EAGAIN)
        {
            NoteError(operation, result);
        }

        return false;
    }

    /// <summary>
    /// Performs the operation, waiting as long as it takes. <see langword="false"/>: the descriptor is not ready, and the operation waits
    /// in the poller.
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
            long result = operation.Kind == FileRequestKind.Sync ? SyncData() : CanSeek || _isNonBlocking ? CallPlain(operation)
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

    /// <summary>Records what the call has answered.</summary>
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
            operation.Finish(result == -Libc.EINVAL && _isDirect ? NotWhole(Path) : FileErrors.FromErrno((int)-result, Path));
        }
    }

    /// <summary>
    /// A file that cannot seek and is not ours: poll(2) has said that it is ready, but somebody else may have been faster, so still without
    /// waiting where that is known.
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
    /// What the call that does not wait fails with may be spurious (an EIO has been seen): the plain call is asked before it is believed.
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
    /// Whether it is an error of a file that cannot seek: a socket tells of one once (ECONNRESET), and of the end from then on, so nothing
    /// is asked behind it.
    /// </summary>
    private bool IsBelieved(long result) => result < 0 && result != -Libc.EAGAIN && !CanSeek && !IsUnknownCall(result);

    /// <summary>
    /// Whether the system, or this file's part of it, refuses the call that does not wait as such: a kernel or file system without it, a
    /// seccomp filter.
    /// </summary>
    internal static bool IsUnknownCall(long result)
        => result is -Libc.ENOSYS or -Libc.EOPNOTSUPP or -Libc.EPERM or -Libc.EINVAL or -Libc.ESPIPE;

    /// <summary>The call that may wait, and the only one whose 0 is the end of the file.</summary>
    private long CallPlain(FileRequest operation)
    {
        long result = Call(operation, mayWait: true);
        if (operation.Kind == FileRequestKind.Write)
        {
            // writev(2) has moved the position of the open file to behind its bytes, wherever it has put them.
            _endOfLastWrite = WritesSequentially && result > 0 ? Libc.LSeek(Handle, 0, SeekOrigin.Current) : _endOfLastWrite;
            return result;
        }

        operation.IsShortAtEnd = CanSeek;
        if (CanSeek && result >= 0)
        {
            // Where the file has grown nobody knows the new end yet.
            _knownEnd = result == 0 ? operation.Offset : operation.Offset >= _knownEnd ? long.MaxValue : _knownEnd;
        }

        return result;
    }

    private long SyncData()
    {
        long result;
        do
        {
            result = _calls.Sync(Handle);
        }
        while (result == -Libc.EINTR);

        // A FIFO, a terminal or a read-only file system has nothing to sync (fdatasync(2): EINVAL, EROFS).
        return result is -Libc.EINVAL or -Libc.EROFS ? 0 : result;
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
            // So much does not wait where poll(2) says that the file is ready.
            count = 1;
            vectors[0].Length = Math.Min(vectors[0].Length, Libc.PIPE_BUF);
        }

        long offset = CanSeek && (isRead || !WritesSequentially) ? operation.Offset : -1;
        bool isUncached = _behind is not null && _behind.Enter(operation.Offset, operation.Length);
        long result;
        do
        {
            int flags = (mayWait ? 0 : Libc.RWF_NOWAIT) | (isUncached ? Libc.RWF_DONTCACHE : 0);
            result = isRead ? _calls.Read(Handle, vectors, count, offset, flags) : _calls.Write(Handle, vectors, count, offset, flags);
            if (isUncached && IsUnknownCall(result))
            {
                _behind!.GiveUpFlag((int)-result);
                isUncached = _behind.Enter(operation.Offset, operation.Length);
                result = -Libc.EINTR;
            }
        }
        while (result == -Libc.EINTR);

        return result;
    }
}
