using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// A file that cannot seek, as .NET offers it everywhere: a call that blocks for as long as the other side likes. So each such file has a
/// thread of its own, which exists while there is something to do and some seconds more. A read brings its bytes into memory of the file's
/// own, so that a request can be canceled at once and its memory is the caller's again; the bytes are there for the next request. On
/// Windows CancelSynchronousIo gives a call up that nobody wants any more.
/// </summary>
internal sealed class SequentialFile(SafeFileHandle handle, string? path, FileProperties properties) : OpenedFile(handle, path, properties)
{
    /// <summary>How long the thread outlives its last call, milliseconds.</summary>
    private const int IdleMilliseconds = 5000;

    /// <summary>
    /// How often a call is given up anew that was not found, each time after twice as many milliseconds: it may be on its way into the
    /// system.
    /// </summary>
    private const int MostAttempts = 10;

    private const int StackBytes = 256 * 1024;

    // What a pipe holds on Linux, bytes (pipe(7)).
    private const int BufferSize = 64 * 1024;

    // Guards everything below, and the canceled generation of the request. Held for moments only: never during a call.
    private readonly object _gate = new();

    // Waits for its result; the thread's work.
    private FileRequest? _request;
    private bool _hasThread;
    private bool _isReleased;

    // Whether the thread is in a call, and on Windows which thread.
    private bool _isCalling;
    private SafeFileHandle? _thread;

    // What the last call has brought, and no request has taken yet. The buffer is the call's while that is under way.
    private bool _hasResult;
    private Exception? _error;
    private byte[] _buffer = [];
    private int _start;
    private int _end;

    // RandomAccess refuses what cannot seek. The thread's; never disposed, as the handle is closed by itself, or left open.
    private FileStream? _stream;

    internal override FilePipeBackend Kind => FilePipeBackend.Portable;

    internal override int MaxBuffersPerOperation => 1;

    // A write that somebody has to make room for need not be given up.
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

            // A write has the caller's memory until its call returns, and its bytes have moved then.
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
            // The system has no further thread: one of the application's, then.
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
            // For the other kinds there is nothing to flush, or flushing would wait until the other side has read everything.
            moved = request.Kind == FileRequestKind.Read ? Read() : request.Kind == FileRequestKind.Write ? Write(request) : 0;
        }
        catch (Exception e)
        {
            // Whatever it is, whoever waits gets it.
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
            // Somebody may have written nothing into a pipe of Windows, which is no end of it.
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

    /// <summary>Gives up the call that the thread is in, where the system can do that.</summary>
    private void GiveUp(int attempt)
    {
        lock (_gate)
        {
            // Under the lock the thread stays within the call.
            if (_thread is null || Kernel32.CancelSynchronousIo(_thread) != 0 || attempt == MostAttempts)
            {
                return;
            }
        }

        _ = Task.Delay(1 << attempt).ContinueWith(_ => GiveUp(attempt + 1), CancellationToken.None, TaskContinuationOptions.None,
            TaskScheduler.Default);
    }
}
