using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// A file that cannot seek, by .NET's blocking calls, which may block as long as the other side likes. So each such file has a thread of
/// its own, which ends when it has been idle for some seconds. A read fills memory of the file's own: a read that is canceled ends at once,
/// its memory returns to its owner, and the next read gets the bytes. The call and its thread end when the other side lets them.
/// </summary>
internal sealed class SequentialFile(SafeFileHandle handle, string? path, FileProperties properties) : OpenedFile(handle, path, properties)
{
    private const int IdleMilliseconds = 5000;
    private const int StackBytes = 256 * 1024;

    // The capacity of a pipe on Linux, bytes (pipe(7)).
    private const int BufferSize = 64 * 1024;

    // Guards everything below, and the canceled generation of the request. Never held during a call.
    private readonly object _gate = new();

    // The request that waits for the thread.
    private FileRequest? _request;
    private bool _hasThread;
    private bool _isCalling;
    private bool _isReleased;

    // What a call has read, or its error, if no request has taken it yet. The thread owns the buffer while it reads.
    private bool _hasRead;
    private Exception? _error;
    private byte[] _buffer = [];
    private int _start;
    private int _end;

    // RandomAccess does not support files that cannot seek. Owned by the thread. Never disposed of: the file closes the handle.
    private FileStream? _stream;

    internal override FilePipeBackend Kind => FilePipeBackend.Portable;

    internal override int MaxBuffersPerOperation => 1;

    // A write waits for its reader, for ever if need be.
    internal override bool EndsWrites => false;

    internal override Attempt Try(FileRequest operation, bool mayWait)
    {
        lock (_gate)
        {
            bool isOver = _hasRead && operation.Kind == FileRequestKind.Read;
            if (isOver)
            {
                TakeReadLocked(operation);
            }

            return isOver ? Attempt.Done : Attempt.WouldBlock;
        }
    }

    internal override void Start(FileRequest operation)
    {
        bool isOver;
        bool starts = false;
        lock (_gate)
        {
            isOver = _hasRead || operation.IsCancelWanted;
            if (_hasRead)
            {
                TakeReadLocked(operation);
            }
            else if (isOver)
            {
                operation.FinishCanceled();
            }
            else
            {
                _request = operation;
                starts = !_hasThread;
                _hasThread = true;
                Monitor.Pulse(_gate);
            }
        }

        if (isOver)
        {
            operation.Complete();
        }
        else if (starts)
        {
            StartThread();
        }
    }

    internal override void Cancel(FileRequest operation, int generation)
    {
        lock (_gate)
        {
            if (operation.Generation != generation)
            {
                return;
            }

            operation.CanceledGeneration = generation;

            // A write uses the caller's memory until its call returns.
            if (_request != operation || (_isCalling && operation.Kind != FileRequestKind.Read))
            {
                return;
            }

            _request = null;
            operation.FinishCanceled();
        }

        operation.Complete();
    }

    internal override void Release(bool closeHandle)
    {
        lock (_gate)
        {
            _isReleased = true;
            Monitor.Pulse(_gate);
        }

        base.Release(closeHandle);
    }

    private void StartThread()
    {
        try
        {
            new Thread(Run, StackBytes) { IsBackground = true, Name = WaitingThreads.ThreadName }.UnsafeStart();
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            // The system could not start a thread, so a thread of the application's pool does the work.
            ThreadPool.UnsafeQueueUserWorkItem(static file => file.Run(), this, preferLocal: false);
        }
    }

    private void Run()
    {
        while (true)
        {
            FileRequest? request;
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

                _isCalling = true;
            }

            bool reads = request.Kind == FileRequestKind.Read;
            if (reads)
            {
                Read();
            }
            else
            {
                Write(request);
            }

            lock (_gate)
            {
                // Not the request that the call was made for, if that was canceled meanwhile.
                request = _request;
                _request = null;
                _isCalling = false;
                _hasRead = reads;
                if (reads && request is not null)
                {
                    TakeReadLocked(request);
                }
            }

            request?.Complete();
        }
    }

    private void Read()
    {
        try
        {
            _buffer = _buffer.Length == 0 ? new byte[BufferSize] : _buffer;
            _start = _end = 0;
            do
            {
                // Somebody may have written 0 bytes into a pipe of Windows, which is not its end.
                _end = Stream(FileAccess.Read).Read(_buffer);
            }
            while (_end == 0 && OperatingSystem.IsWindows() && WindowsCalls.IsPipeThatGoesOn(Handle));
        }
        catch (Exception e)
        {
            // Every exception is the result.
            _error = FileErrors.WithPath(e, Path);
        }
    }

    private void Write(FileRequest request)
    {
        if (request.Kind == FileRequestKind.Step)
        {
            request.PerformStep();
            return;
        }

        try
        {
            // There is nothing to sync: that would do nothing, or wait until the other side has read everything.
            if (request.Kind == FileRequestKind.Write)
            {
                Stream(FileAccess.Write).Write(request.PinnedBytes);
            }

            request.Finish(request.Length);
        }
        catch (Exception e)
        {
            // Every exception is the result.
            request.Finish(FileErrors.WithPath(e, Path));
        }
    }

    private FileStream Stream(FileAccess access) => _stream ??= new FileStream(Handle, access, bufferSize: 0, Handle.IsAsync);

    /// <summary>Gives what was read to a request, which is finished then.</summary>
    private void TakeReadLocked(FileRequest request)
    {
        if (_error is not null)
        {
            request.Finish(_error);
            _error = null;
        }
        else
        {
            Span<byte> bytes = _buffer.AsSpan(_start, Math.Min(_end - _start, request.PinnedBytes.Length));
            bytes.CopyTo(request.PinnedBytes);
            _start += bytes.Length;
            request.Finish(bytes.Length);
        }

        _hasRead = _start < _end;
    }
}
