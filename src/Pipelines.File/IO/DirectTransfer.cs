using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// A request of a <see cref="DirectFile"/> while it is performed: its parts, in order, and the workers that take the next part each until
/// none is left. The last worker completes the request. What came of it is in file order: the bytes before the first part that was short or
/// failed.
/// </summary>
internal sealed class DirectTransfer
{
    private readonly DirectFile _file;
    private readonly Worker[] _workers;

    // Guards everything below while workers run.
    private readonly Lock _lock = new();
    private FileRequest? _request;
    private long _next;
    private int _working;

    // Where the unbroken bytes end, file offset, and the error that ends them there, if any.
    private long _end;
    private Exception? _error;

    internal DirectTransfer(DirectFile file, int inFlight)
    {
        _file = file;
        _workers = new Worker[inFlight];
        for (int i = 0; i < inFlight; i++)
        {
            _workers[i] = new Worker(this);
        }
    }

    /// <summary>Has the request performed by waiting threads.</summary>
    internal void Begin(FileRequest request, bool isDivided)
    {
        _request = request;
        _next = request.Offset;
        _end = request.Offset + request.Length;
        _error = null;
        long parts = (_end - _file.BoundaryBefore(request.Offset) + DirectFile.BytesPerCall - 1) / DirectFile.BytesPerCall;
        int workers = isDivided ? (int)Math.Min(parts, _workers.Length) : 1;

        // When the last of them is queued the transfer may be over at any moment, and in use for another request.
        _working = workers;
        for (int i = 0; i < workers; i++)
        {
            WaitingThreads.Shared.Queue(_workers[i]);
        }
    }

    private void Perform()
    {
        while (TryTake(out long start, out long end))
        {
            long done = start;
            Exception? error = null;
            try
            {
                _file.Perform(_request!, start, end, ref done);
            }
            catch (Exception e)
            {
                // Whatever it is, a lack of memory included: nobody waits in vain.
                error = e;
            }

            if (done < end)
            {
                End(done, error);
            }
        }

        if (LeavesLast())
        {
            Complete();
        }
    }

    /// <summary>The next part, unless something in front of it has ended the request.</summary>
    private bool TryTake(out long start, out long end)
    {
        lock (_lock)
        {
            start = _next;
            end = Math.Min(_end, _file.BoundaryBefore(start) + DirectFile.BytesPerCall);
            if (start >= end)
            {
                return false;
            }

            _next = end;
            return true;
        }
    }

    private void End(long done, Exception? error)
    {
        lock (_lock)
        {
            if (done < _end)
            {
                _end = done;
                _error = error;
            }
        }
    }

    private bool LeavesLast()
    {
        lock (_lock)
        {
            return --_working == 0;
        }
    }

    private void Complete()
    {
        FileRequest request = _request!;
        long transferred = _end - request.Offset;
        Exception? error = _error;
        _request = null;
        _error = null;
        _file.Keep(this);

        // An error behind bytes that have moved is met again by the next request.
        request.IsShortAtEnd = error is null;
        if (error is not null && transferred == 0)
        {
            request.Finish(FileErrors.WithPath(error, _file.Path));
        }
        else
        {
            request.Finish(transferred);
        }

        request.Complete();
    }

    private sealed class Worker(DirectTransfer transfer) : IWaitingCall
    {
        // A write waits for the device, as a sync does.
        public WaitKind WaitKind => transfer._file.IsWriter ? WaitKind.Sync : WaitKind.Read;

        public IWaitingCall? NextCall { get; set; }

        public long QueuedAt { get; set; }

        public void Perform() => transfer.Perform();
    }
}
