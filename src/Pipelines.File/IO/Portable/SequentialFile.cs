using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// A file that cannot seek, by .NET's blocking calls, which may block as long as the other side likes. So each such file has a thread of
/// its own, which ends when it has been idle for some seconds. No call can be canceled: until it returns, it has its request and memory.
/// Whoever waits for it does not wait for that (<see cref="EndsReads"/>, <see cref="EndsWrites"/>).
/// </summary>
internal sealed class SequentialFile(SafeFileHandle handle, string? path, FileProperties properties)
    : PortableFile(handle, path, properties)
{
    private const int IdleMilliseconds = 5000;
    private const int StackBytes = 256 * 1024;

    // Guards the next three. Never held during a call.
    private readonly object _gate = new();

    // The request that waits for the thread; the file has one request at a time.
    private FileRequest? _request;
    private bool _hasThread;
    private bool _isReleased;

    // RandomAccess does not support files that cannot seek. Owned by the thread. Never disposed of: the file closes the handle.
    private FileStream? _stream;

    internal override bool EndsReads => false;

    internal override bool EndsWrites => false;

    internal override void PerformElsewhere(FileRequest request)
    {
        bool starts;
        lock (_gate)
        {
            Debug.Assert(_request is null && !_isReleased);
            _request = request;
            starts = !_hasThread;
            _hasThread = true;
            Monitor.Pulse(_gate);
        }

        if (starts)
        {
            StartThread();
        }
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

    // There is nothing to sync: that would do nothing, or wait until the other side has read everything.
    private protected override void Sync()
    {
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
        while (TakeRequest() is { } request)
        {
            Perform(request);
        }
    }

    /// <summary>Waits for the next request. Returns <see langword="null"/> if none has come: the thread ends.</summary>
    private FileRequest? TakeRequest()
    {
        lock (_gate)
        {
            if (_request is null && !_isReleased)
            {
                Monitor.Wait(_gate, IdleMilliseconds);
            }

            FileRequest? request = _request;
            _request = null;
            _hasThread = request is not null;
            return request;
        }
    }

    private protected override int Read(Span<byte> bytes, long offset)
    {
        int read;
        do
        {
            // Somebody may have written 0 bytes into a pipe of Windows, which is not its end.
            read = Stream(FileAccess.Read).Read(bytes);
        }
        while (read == 0 && OperatingSystem.IsWindows() && WindowsCalls.IsPipeThatGoesOn(Handle));
        return read;
    }

    private protected override void Write(ReadOnlySpan<byte> bytes, long offset) => Stream(FileAccess.Write).Write(bytes);

    private FileStream Stream(FileAccess access) => _stream ??= new FileStream(Handle, access, bufferSize: 0, Handle.IsAsync);
}
