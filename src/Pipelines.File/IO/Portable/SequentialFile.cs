using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// A file that cannot seek, by .NET's blocking calls, which may block as long as the other side likes. So each such file has a thread of
/// its own, which ends when it has been idle for some seconds. A read reads into memory of the file's own, so a request can be canceled at
/// once, and its memory returns to its owner; the next request gets the bytes. On Windows CancelSynchronousIo ends a write that is
/// canceled, and any call when the file is released.
/// </summary>
internal sealed class SequentialFile(SafeFileHandle handle, string? path, FileProperties properties) : OpenedFile(handle, path, properties)
{
    /// <summary>How long the thread stays idle before it ends, milliseconds.</summary>
    private const int IdleMilliseconds = 5000;

    /// <summary>
    /// How often canceling a call is tried again if the system has not found it, because it may be on its way into the system. The pauses
    /// double, from 1 ms on.
    /// </summary>
    private const int MostAttempts = 10;

    private const int StackBytes = 256 * 1024;

    // The capacity of a pipe on Linux, bytes (pipe(7)).
    private const int BufferSize = 64 * 1024;

    // Guards everything below, and the canceled generation of the request. Held only briefly, never during a call.
    private readonly object _gate = new();

    // The request that waits for its result, which the thread performs.
    private FileRequest? _request;
    private bool _hasThread;
    private bool _isReleased;

    // Whether the thread makes a call, and on Windows the handle of the thread while it does.
    private bool _isCalling;
    private SafeFileHandle? _thread;

    // The result of the last call, if no request has taken it yet. The call owns the buffer while it runs.
    private bool _hasResult;
    private Exception? _error;
    private byte[] _buffer = [];
    private int _start;
    private int _end;

    // RandomAccess does not support files that cannot seek. Owned by the thread. Never disposed of: the handle is closed by the file, or
    // left open.
    private FileStream? _stream;

    internal override FilePipeBackend Kind => FilePipeBackend.Portable;

    internal override int MaxBuffersPerOperation => 1;

    // A write may wait for its reader for ever, and cannot always be canceled.
    internal override bool EndsWrites => false;

    internal override bool TryPerform(FileRequest operation, bool mayWait)
    {
        lock (_gate)
        {
            return operation.Kind == FileRequestKind.Read && TryGiveLocked(operation);
        }
    }

    internal override void Start(FileRequest operation)
    {
        bool isCanceled;
        bool starts = false;
        lock (_gate)
        {
            isCanceled = operation.IsCancelWanted;
            if (!isCanceled)
            {
                _request = operation;
                starts = !_hasThread;
                _hasThread = true;
                Monitor.Pulse(_gate);
            }
        }

        if (isCanceled)
        {
            operation.FinishCanceled();
            operation.Complete();
        }
        else if (starts)
        {
            StartThread();
        }
    }

    internal override void Cancel(FileRequest operation, int generation)
    {
        bool isOver;
        lock (_gate)
        {
            if (operation.Generation != generation)
            {
                return;
            }

            operation.CanceledGeneration = generation;
            if (_request != operation)
            {
                return;
            }

            // A write uses the caller's memory until its call returns, and may have transferred its bytes by then.
            isOver = operation.Kind == FileRequestKind.Read || !(_isCalling || _hasResult);
            if (isOver)
            {
                _request = null;
                operation.FinishCanceled();
            }
        }

        if (isOver)
        {
            operation.Complete();
        }
        else
        {
            GiveUp(attempt: 0);
        }
    }

    internal override void Release(bool closeHandle)
    {
        lock (_gate)
        {
            _isReleased = true;
            Monitor.Pulse(_gate);
        }

        GiveUp(attempt: 0);
        base.Release(closeHandle);
    }

    private void StartThread()
    {
        Thread thread =
            new(static file => ((SequentialFile)file!).Run(), StackBytes) { IsBackground = true, Name = WaitingThreads.ThreadName };
        try
        {
            thread.UnsafeStart(this);
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            // The system could not start a thread, so a thread of the application's pool does the work.
            ThreadPool.UnsafeQueueUserWorkItem(static file => file.Run(), this, preferLocal: false);
        }
    }

    private void Run()
    {
        using SafeFileHandle? thread = OperatingSystem.IsWindows()
            ? Kernel32.OpenThread(Kernel32.THREAD_TERMINATE, inherits: 0, Kernel32.GetCurrentThreadId()) : null;
        while (true)
        {
            FileRequest? request;
            bool isOver;
            lock (_gate)
            {
                if (_request is null && !_isReleased)
                {
                    Monitor.Wait(_gate, IdleMilliseconds);
                }

                request = _request;
                if (request is null)
                {
                    _hasThread = false;
                    return;
                }

                isOver = TryGiveLocked(request);
                _isCalling = !isOver;
                _thread = isOver ? null : thread;
            }

            if (isOver)
            {
                request.Complete();
            }
            else
            {
                Call(request);
            }
        }
    }

    private void Call(FileRequest request)
    {
        int moved = 0;
        Exception? error = null;
        try
        {
            // The other kinds do nothing: there is nothing to flush, or flushing would wait until the other side has read everything.
            moved = request.Kind == FileRequestKind.Read ? Read() : request.Kind == FileRequestKind.Write ? Write(request) : 0;
        }
        catch (Exception e)
        {
            // Every exception is the result.
            error = e;
        }

        lock (_gate)
        {
            _isCalling = false;
            _thread = null;
            _hasResult = true;
            _error = error;
            _start = 0;
            _end = moved;
        }
    }

    private int Read()
    {
        _buffer = _buffer.Length == 0 ? new byte[BufferSize] : _buffer;
        int read;
        do
        {
            // Somebody may have written 0 bytes into a pipe of Windows, which is not its end.
            read = Stream(FileAccess.Read).Read(_buffer);
        }
        while (read == 0 && OperatingSystem.IsWindows() && WindowsCalls.IsPipeThatGoesOn(Handle));
        return read;
    }

    private int Write(FileRequest request)
    {
        Stream(FileAccess.Write).Write(request.PinnedBytes);
        return request.PinnedBytes.Length;
    }

    private FileStream Stream(FileAccess access) => _stream ??= new FileStream(Handle, access, bufferSize: 0, Handle.IsAsync);

    private bool TryGiveLocked(FileRequest request)
    {
        if (!_hasResult)
        {
            return false;
        }

        if (_error is not null && request.IsCancelWanted)
        {
            request.FinishCanceled();
        }
        else if (_error is not null)
        {
            request.Finish(FileErrors.WithPath(_error, Path));
        }
        else if (request.Kind == FileRequestKind.Read)
        {
            Span<byte> bytes = _buffer.AsSpan(_start, Math.Min(_end - _start, request.PinnedBytes.Length));
            bytes.CopyTo(request.PinnedBytes);
            _start += bytes.Length;
            request.Finish(bytes.Length);
        }
        else
        {
            request.Finish(_end);
        }

        _hasResult = _error is null && request.Kind == FileRequestKind.Read && _start < _end;
        _request = null;
        return true;
    }

    /// <summary>Cancels the call that the thread makes, if the system can do that.</summary>
    private void GiveUp(int attempt)
    {
        lock (_gate)
        {
            // Under the lock, so that the thread cannot begin another call meanwhile.
            if (_thread is null || Kernel32.CancelSynchronousIo(_thread) != 0 || attempt == MostAttempts)
            {
                return;
            }
        }

        _ = Task.Delay(1 << attempt).ContinueWith(_ => GiveUp(attempt + 1), CancellationToken.None, TaskContinuationOptions.None,
            TaskScheduler.Default);
    }
}
