using Pipelines.File.Diagnostics;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// Linux: a read is tried without waiting (RWF_NOWAIT) on the caller's thread, and finishes there if the page cache has the data. A call
/// that has to wait is performed by one of the <see cref="WaitingThreads"/>. Files that may have no data for ever (FIFOs, terminals,
/// sockets) wait in <see cref="DescriptorPoller"/> and hold no thread.
/// </summary>
[UnsupportedOSPlatform("windows")]
internal sealed unsafe class UnixFile : OpenedFile
{
    private readonly UnixCalls _calls;

    // A FIFO that was opened by path has a file description of its own, so O_NONBLOCK can be set on it: its calls never wait, and transfer
    // as much as there is room for.
    private readonly bool _isNonBlocking;

    // Whether the kernel and this file's file system support RWF_NOWAIT: a property of the file, not of the process. It only ever becomes
    // false, so the readers of a SharedFile may set it at once.
    private bool _triesNoWait = true;

    private long _endOfLastWrite = -1;

    // For FileCaching.DropBehind. Owned by whoever performs the one running operation.
    private PagesBehind? _behind;

    internal UnixFile(SafeFileHandle handle, string? path, FileProperties properties, UnixCalls? calls = null)
        : base(handle, path, properties)
    {
        _calls = calls ?? UnixCalls.Default;
        if (!properties.CanSeek)
        {
            DescriptorPoller.Shared.Prepare(this);
        }

        _isNonBlocking = path is not null && properties.IsFifo && _calls.TrySetNonBlocking(handle);
    }

    internal override FilePipeBackend Kind => FilePipeBackend.UnixThreads;

    private protected override UnixCalls Calls => _calls;

    // Whether writes use writev(2) instead of pwritev(2).
    private bool WritesSequentially => CanSeek && (Appends || SharesPosition);

    internal override long EndOfLastWrite => _endOfLastWrite;

    // The kernel takes 1024 (IOV_MAX). This is the number that a pooled request keeps, so that the smallest segments allocate nothing
    // either.
    internal override int MaxBuffersPerOperation => FileRequest.MaxPooledBuffers;

    // A write to a terminal that is stopped (Ctrl-S), or that nobody reads, blocks if it is larger than the room. poll(2) does not report
    // the room, and terminals do not support RWF_NOWAIT.
    internal override bool EndsWrites => !Properties.IsCharacterDevice;

    private protected override bool TryPerform(FileRequest request, bool mayWait)
    {
        bool reads = request.Kind == FileRequestKind.Read;
        if (!mayWait && !reads)
        {
            return false;
        }

        if (request.Kind is FileRequestKind.Read or FileRequestKind.Write)
        {
            return (!mayWait && HasFoundEnd(request)) || Transfer(request, mayWait, reads);
        }

        PerformStep(request);
        return true;
    }

    internal override void Start(FileRequest request)
    {
        if (CanSeek || request.Kind is FileRequestKind.Sync or FileRequestKind.Step || _calls.IsReady(Handle, EventsOf(request)))
        {
            request.Queue();
        }
        else
        {
            WaitUntilReady(request);
        }
    }

    internal override void WaitUntilReady(FileRequest request)
    {
        try
        {
            if (DescriptorPoller.Shared.TryAdd(request, Handle, EventsOf(request)))
            {
                return;
            }

            request.FinishCanceled();
        }
        catch (Exception e)
        {
            // The system has no descriptor or thread to wait with, or the file is closed.
            request.Finish(FileErrors.WithPath(e, Path));
        }

        request.Complete();
    }

    // A call that never waits is made on the poller's thread.
    internal override void OnReady(FileRequest request)
    {
        if (_isNonBlocking)
        {
            Perform(request);
        }
        else
        {
            request.Queue();
        }
    }

    internal override void Cancel(FileRequest request)
    {
        if (!CanSeek && DescriptorPoller.Shared.TryCancel(request))
        {
            request.FinishCanceled();
            request.Complete();
        }
    }

    internal override void DropBehind(bool isWriter)
        => _behind = CanSeek && Properties.IsRegular ? new PagesBehind(_calls, Handle, Properties.Length, isWriter) : null;

    internal override void Release(bool closeHandle)
    {
        _behind?.Release();
        base.Release(closeHandle);
    }

    private static short EventsOf(FileRequest operation) => operation.Kind == FileRequestKind.Read ? Libc.POLLIN : Libc.POLLOUT;

    /// <summary>
    /// Whether the file ends where its reader expects that: then no thread is asked to make a read that finds nothing. Only where the
    /// kernel knows the length itself: a server would have to be asked for it, which may take long.
    /// </summary>
    private bool HasFoundEnd(FileRequest request)
    {
        bool isEnd = request.ExpectsEnd && LocalFileSystems.Hold(Properties)
            && _calls.LengthOf(Handle) is >= 0 and long length && length <= request.Offset;

        // Once the end was seen, reads find what was appended.
        request.ExpectsEnd = false;
        if (isEnd)
        {
            request.Finish(0);
        }

        return isEnd;
    }

    private bool Transfer(FileRequest request, bool mayWait, bool reads)
    {
        // These plain calls do not wait longer than the caller allows. Only the 0 of a plain call means the end: Linux 5.9 and 5.10 may
        // return 0 before it (preadv2(2), BUGS).
        bool isPlain = _isNonBlocking || (CanSeek && mayWait);
        if (!isPlain && _triesNoWait)
        {
            CallResult tried = Call(request, mayWait: false);
            if (tried.WouldBlock)
            {
                return false;
            }

            // A socket reports an error once (ECONNRESET), and then the end, so no second call is made. The error of a file may be spurious
            // (an EIO has been seen), so the plain call decides.
            if (tried.Moved > 0 || (tried.Errno != 0 && !CanSeek && !tried.IsUnknownCall))
            {
                End(request, tried);
                return true;
            }

            _triesNoWait = !tried.IsUnknownCall;
            if (tried.Errno != 0)
            {
                FilePipeMetrics.FellBack(reads ? "preadv2" : "pwritev2", tried.Errno);
            }
        }

        if (!isPlain && (!mayWait || !_calls.IsReady(Handle, EventsOf(request))))
        {
            return false;
        }

        CallResult result = CallPlain(request);
        if (result.WouldBlock && !(CanSeek && mayWait))
        {
            return false;
        }

        End(request, result);
        return true;
    }

    /// <summary>Records the result of the call.</summary>
    private void End(FileRequest request, CallResult result)
    {
        // EPIPE is the end of a FIFO or socket. A device goes on: /dev/kmsg answers it for messages that it had to drop.
        bool isEnd = result.Errno == Libc.EPIPE && request.Kind == FileRequestKind.Read && !CanSeek && !Properties.IsCharacterDevice;
        if (result.Errno == 0 || isEnd)
        {
            request.Finish(result.Moved);
        }
        else
        {
            request.Finish(FileErrors.FromErrno(result.Errno, Path));
        }
    }

    /// <summary>Makes the plain call. It may wait, and only its 0 means the end of the file.</summary>
    private CallResult CallPlain(FileRequest operation)
    {
        CallResult result = Call(operation, mayWait: true);
        if (operation.Kind == FileRequestKind.Write)
        {
            // writev(2) has moved the position of the open file behind its bytes, wherever it has written them.
            _endOfLastWrite = WritesSequentially && result.Moved > 0 ? LibcCalls.LSeek(Handle, 0, SeekOrigin.Current) : _endOfLastWrite;
        }

        return result;
    }

    [SkipLocalsInit]
    private CallResult Call(FileRequest operation, bool mayWait)
    {
        bool isRead = operation.Kind == FileRequestKind.Read;
        int count = operation.BufferCount;
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
        while (true)
        {
            long answer = _behind?.Enter(operation.Offset) ?? 0;
            if (answer >= 0)
            {
                int flags = mayWait ? 0 : Libc.RWF_NOWAIT;
                answer = isRead ? _calls.Read(Handle, vectors, count, offset, flags)
                    : _calls.Write(Handle, vectors, count, offset, flags);
            }

            if (answer != -Libc.EINTR)
            {
                return new CallResult(answer);
            }
        }
    }
}
