using System.Runtime.CompilerServices;

namespace Pipelines.File.IO;

/// <summary>
/// The reads of a file that cannot seek, as .NET offers them everywhere: a call that cannot be given up. It reads into memory of its own, so that a request can be canceled at once, and its memory is the
/// caller's again; what the call brings is there for the next request.
/// </summary>
internal sealed class SequentialReader
{
    // What a pipe holds on Linux, bytes (pipe(7)).
    private const int BufferSize = 64 * 1024;

    private readonly PortableFile _file;
    private readonly Action _onRead;

    // Guards everything below.
    private readonly Lock _lock = new();
    private PortableRequest? _waiting;
    private bool _isReading;
    private ValueTaskAwaiter<int> _read;

    // The call's while it is under way.
    private byte[] _buffer = [];

    // What the last call has brought, and no request has taken yet.
    private bool _hasResult;
    private Exception? _error;
    private int _start;
    private int _end;

    internal SequentialReader(PortableFile file)
    {
        _file = file;
        _onRead = OnRead;
    }

    /// <summary>Completes the request when there is something for it.</summary>
    internal void Perform(PortableRequest request)
    {
        bool isOver = true;
        bool begins = false;
        lock (_lock)
        {
            if (request.CanceledGeneration == request.Generation)
            {
                request.FinishCanceled();
            }
            else if (_hasResult)
            {
                GiveLocked(request);
            }
            else
            {
                _waiting = request;
                isOver = false;
                begins = !_isReading;
                _isReading = true;
            }
        }

        if (isOver)
        {
            request.Complete();
        }
        else if (begins)
        {
            Begin();
        }
    }

    internal void Cancel(PortableRequest request, int generation)
    {
        lock (_lock)
        {
            if (request.Generation != generation)
            {
                return;
            }

            request.CanceledGeneration = generation;
            if (_waiting != request)
            {
                return;
            }

            _waiting = null;
            request.FinishCanceled();
        }

        request.Complete();
    }

    private void Begin()
    {
        try
        {
            _buffer = _buffer.Length == 0 ? new byte[BufferSize] : _buffer;
            Await(_file.Sequential(FileAccess.Read).ReadAsync(_buffer));
        }
        catch (Exception e) when (PortableFile.IsOfTheFile(e))
        {
            End(0, e);
        }
    }

    private void Await(ValueTask<int> read)
    {
        _read = read.GetAwaiter();
        if (_read.IsCompleted)
        {
            OnRead();
        }
        else
        {
            _read.UnsafeOnCompleted(_onRead);
        }
    }

    private void OnRead()
    {
        int length = 0;
        Exception? error = null;
        try
        {
            length = _read.GetResult();
        }
        catch (Exception e) when (PortableFile.IsOfTheFile(e))
        {
            error = e;
        }

        End(length, error);
    }

    private void End(int length, Exception? error)
    {
        PortableRequest? waiting;
        lock (_lock)
        {
            _isReading = false;
            _hasResult = true;
            _error = error;
            _start = 0;
            _end = length;
            waiting = _waiting;
            _waiting = null;
            if (waiting is not null)
            {
                GiveLocked(waiting);
            }
        }

        waiting?.Complete();
    }

    private void GiveLocked(PortableRequest request)
    {
        if (_error is { } error)
        {
            request.Finish(FileErrors.WithPath(error, _file.Path));
        }
        else if (_end == 0 && OperatingSystem.IsWindows() && WindowsCalls.Default.IsPipeThatGoesOn(_file.Handle))
        {
            // Somebody has written nothing into the pipe, which the runtime gives as the end of it: whoever reads asks again.
            request.FinishCanceled();
        }
        else
        {
            int length = Math.Min(_end - _start, request.FirstBuffer.Length);
            _buffer.AsSpan(_start, length).CopyTo(PortableFile.PinnedOf(request));
            _start += length;
            request.Finish(length);
        }

        _hasResult = _start < _end;
    }
}
