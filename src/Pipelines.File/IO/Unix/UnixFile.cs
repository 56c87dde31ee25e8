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

    private protected override bool TryPerformCore(FileRequest request, bool mayWait) => request.Kind switch
    {
        FileRequestKind.Read => TryRead(request, mayWait),
        FileRequestKind.Write => mayWait && TryWrite(request),
        _ => mayWait && PerformStep(request),
    };

    internal override void PerformElsewhere(FileRequest request)
    {
        if (CanSeek || request.Kind is FileRequestKind.Sync or FileRequestKind.Step || _calls.IsReady(Handle, EventsOf(request)))
        {
            request.Queue();
        }
        else
        {
            PerformWhenReady(request);
        }
    }

    internal override void PerformWhenReady(FileRequest request)
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

    /// <summary>A read of a file that can seek waits for the device only, so it blocks where the caller may wait.</summary>
    private bool TryRead(FileRequest request, bool mayWait)
        => CanSeek && mayWait ? End(request, Read(request)) : TryWithoutWaiting(request, mayWait);

    /// <summary>A write to a file that can seek blocks; it waits for the device at most.</summary>
    private bool TryWrite(FileRequest request)
    {
        if (!CanSeek)
        {
            return TryWithoutWaiting(request, mayPoll: true);
        }

        CallResult result = Write(request);
        if (WritesSequentially && result.Moved > 0)
        {
            // writev(2) has moved the position of the open file behind its bytes, wherever it has written them.
            _endOfLastWrite = LibcCalls.LSeek(Handle, 0, SeekOrigin.Current);
        }

        return End(request, result);
    }

    /// <summary>
    /// Makes a call that waits for nobody. With <paramref name="mayPoll"/> that is the plain one where poll(2) says that it would not wait.
    /// Returns <see langword="false"/> if the call would wait, or if only a plain call can tell what it answers.
    /// </summary>
    private bool TryWithoutWaiting(FileRequest request, bool mayPoll)
    {
        if (_triesNoWait && !_isNonBlocking)
        {
            CallResult tried = Call(request, Libc.RWF_NOWAIT);
            if (tried.WouldBlock)
            {
                return false;
            }

            // A socket reports an error once (ECONNRESET), and then the end, so no second call is made. The error of a file may be spurious
            // (an EIO has been seen), so the plain call decides. So it does about the end: Linux 5.9 and 5.10 may return 0 before it
            // (preadv2(2), BUGS), and a server may have more. But where a file of this kernel had its end when it was opened, 0 is right.
            if (tried.Moved > 0 || (tried.Errno == 0 ? request.ExpectsEnd && LocalFileSystems.Hold(Properties)
                : !CanSeek && !tried.IsUnknownCall))
            {
                return End(request, tried);
            }

            _triesNoWait = !tried.IsUnknownCall;
            if (tried.Errno != 0)
            {
                FilePipeMetrics.FellBack(request.Kind == FileRequestKind.Read ? "preadv2" : "pwritev2", tried.Errno);
            }
        }

        if (!_isNonBlocking && (!mayPoll || !_calls.IsReady(Handle, EventsOf(request))))
        {
            return false;
        }

        CallResult result = Call(request);
        return !result.WouldBlock && End(request, result);
    }

    /// <summary>Records the result of the call. Returns <see langword="true"/>: the request is over.</summary>
    private bool End(FileRequest request, CallResult result)
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

        return true;
    }

    private CallResult Call(FileRequest request, int flags = 0)
        => request.Kind == FileRequestKind.Read ? Read(request, flags) : Write(request, flags);

    [SkipLocalsInit]
    private CallResult Read(FileRequest request, int flags = 0)
    {
        Libc.IoVector* vectors = stackalloc Libc.IoVector[request.BufferCount];
        request.CopyTo(vectors);
        _behind?.Enter(request.Offset);
        long answer;
        do
        {
            answer = _calls.Read(Handle, vectors, request.BufferCount, CanSeek ? request.Offset : -1, flags);
        }
        while (answer == -Libc.EINTR);

        return new CallResult(answer);
    }

    [SkipLocalsInit]
    private CallResult Write(FileRequest request, int flags = 0)
    {
        int count = request.BufferCount;
        Libc.IoVector* vectors = stackalloc Libc.IoVector[count];
        request.CopyTo(vectors);
        if (!CanSeek && !_isNonBlocking && flags == 0)
        {
            // A write of this size does not block if poll(2) has reported the file as writable.
            count = 1;
            vectors[0].Length = Math.Min(vectors[0].Length, Libc.PIPE_BUF);
        }

        long offset = CanSeek && !WritesSequentially ? request.Offset : -1;
        long answer = _behind?.Enter(request.Offset) ?? 0;
        if (answer < 0)
        {
            return new CallResult(answer);
        }

        do
        {
            answer = _calls.Write(Handle, vectors, count, offset, flags);
        }
        while (answer == -Libc.EINTR);

        return new CallResult(answer);
    }
}
