using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// Performs the request of a <see cref="DirectFile"/>: it holds the memory, and its workers take one part after the other until none is
/// left. The result is in file order: the bytes before the first part that was short or failed.
/// </summary>
/// <remarks>
/// A write ends when the last worker has stopped. A read that slides (<see cref="FileRequest.Slides"/>) ends a run when half of
/// <see cref="OpenedFile.BytesPerRead"/> has been read: its owner takes these bytes, adds memory for more, and runs the request again,
/// while the workers go on with the rest.
/// </remarks>
internal sealed class DirectTransfer
{
    private readonly DirectFile _file;
    private readonly Worker[] _workers;

    // Guards everything below.
    private readonly Lock _lock = new();
    private readonly Stack<Worker> _idle;

    // The request, and whether its owner awaits the end of a run. Between two runs the workers go on with the parts that are left.
    private FileRequest? _request;
    private bool _isAwaited;

    // The memory whose bytes are not reported yet, and the file offset where it begins.
    private readonly List<Libc.IoVector> _memory = [];
    private long _start;

    // File offsets of the next part and of the end of the request. A part that was short or failed moves the end to where it stopped;
    // _error is its error, if any.
    private long _next;
    private long _end;
    private Exception? _error;

    // _end is before the end of the memory: a part was short or failed, or the request was stopped.
    private bool _isCut;

    internal DirectTransfer(DirectFile file, int inFlight)
    {
        _file = file;
        _workers = [.. Enumerable.Range(0, inFlight).Select(_ => new Worker(this))];
        _idle = new Stack<Worker>(_workers);
    }

    /// <summary>Has waiting threads perform the request, or continue it with the memory that was added.</summary>
    internal void Run(FileRequest request, bool isDivided)
    {
        lock (_lock)
        {
            if (!request.IsUnderWay)
            {
                _request = request;
                _start = _next = request.Offset;
                _error = null;
                _isCut = false;
            }

            for (int i = _memory.Count; i < request.BufferCount; i++)
            {
                ref readonly TransferBuffer buffer = ref request.BufferAt(i);
                _memory.Add(new Libc.IoVector { Base = buffer.Address, Length = buffer.Memory.Length });
            }

            _end = _isCut ? _end : request.Offset + request.Length;
            _isAwaited = true;

            // A worker for each part that is not taken, and at least one: the run may be over by now, and only a worker can end it.
            long parts = Math.Max(1, (_end - _file.BoundaryBefore(_next) + DirectFile.BytesPerCall - 1) / DirectFile.BytesPerCall);
            for (int working = _workers.Length - _idle.Count; parts > 0 && working < (isDivided ? _workers.Length : 1); parts--, working++)
            {
                WaitingThreads.Shared.Queue(_idle.Pop());
            }
        }
    }

    /// <summary>
    /// Ends a read that nobody waits for any more: parts that no worker has taken are not read. At least one part always is, because a
    /// result of 0 bytes would mean the end of the file.
    /// </summary>
    internal void Stop(FileRequest request, int generation)
    {
        lock (_lock)
        {
            if (_request == request && request.Slides && request.Generation == generation && _start < _next && _next < _end)
            {
                _end = _next;
                _isCut = true;
            }
        }
    }

    private void Perform(Worker worker)
    {
        FileRequest? ended;
        while (TryTakePart(worker, out ended))
        {
            worker.Done = worker.Start;
            try
            {
                _file.Perform(CollectionsMarshal.AsSpan(worker.Memory), worker.Start, worker.End, ref worker.Done);
            }
            catch (Exception e)
            {
                // Any exception, also OutOfMemoryException, is reported, because somebody waits for the result.
                worker.Error = e;
            }
        }

        // Runs the owner's continuation, which may begin the next run.
        ended?.Complete();
    }

    /// <summary>
    /// Records the result of the worker's part, and gives it the next one. Returns <see langword="false"/> if there is none, or if the
    /// worker has to end a run (<paramref name="ended"/>): the worker is idle then.
    /// </summary>
    private bool TryTakePart(Worker worker, out FileRequest? ended)
    {
        lock (_lock)
        {
            if (worker.Done < Math.Min(worker.End, _end))
            {
                _end = worker.Done;
                _error = worker.Error;
                _isCut = true;
            }

            worker.Leave();
            ended = TryEndRunLocked();
            if (ended is not null || _next >= _end)
            {
                _idle.Push(worker);
                return false;
            }

            worker.Start = _next;
            worker.End = _next = Math.Min(_end, _file.BoundaryBefore(_next) + DirectFile.BytesPerCall);
            CollectionsMarshal.SetCount(worker.Memory, _memory.Count);
            int count = DirectFile.Gather(
                CollectionsMarshal.AsSpan(_memory), _start, worker.Start, worker.End, CollectionsMarshal.AsSpan(worker.Memory));
            CollectionsMarshal.SetCount(worker.Memory, count);
            return true;
        }
    }

    /// <summary>
    /// Ends the run if it is over, and returns its request: either no part is left and no other worker runs, or half of what a read asks
    /// for has been read, in whole pieces of memory.
    /// </summary>
    private FileRequest? TryEndRunLocked()
    {
        if (!_isAwaited)
        {
            return null;
        }

        FileRequest request = _request!;
        long reached = _next;
        foreach (Worker worker in _workers)
        {
            reached = Math.Min(reached, worker.Start);
        }

        int buffers = _memory.Count;
        long transferred = _end - _start;
        bool isLast = _next >= _end && _idle.Count == _workers.Length - 1;
        if (!isLast)
        {
            buffers = 0;
            transferred = 0;
            while (buffers < _memory.Count && _start + transferred + _memory[buffers].Length <= reached)
            {
                transferred += _memory[buffers++].Length;
            }

            if (_isCut || !request.Slides || transferred < _file.BytesPerRead / 2 || buffers == _memory.Count)
            {
                return null;
            }
        }

        _isAwaited = false;
        _memory.RemoveRange(0, buffers);
        _start += transferred;
        request.IsUnderWay = !isLast;
        request.IsShortAtEnd = isLast && _error is null;
        if (transferred == 0 && _error is not null)
        {
            request.Finish(FileErrors.WithPath(_error, _file.Path));
        }
        else
        {
            // If bytes were transferred before an error, the next request meets the error again.
            request.Finish(transferred);
        }

        return request;
    }

    private sealed class Worker(DirectTransfer transfer) : IWaitingCall
    {
        /// <summary>The file offset that the part has reached.</summary>
        internal long Done;

        // A direct write waits for the device, as a sync does.
        public WaitKind WaitKind => transfer._file.IsWriter ? WaitKind.Sync : WaitKind.Read;

        public long QueuedAt { get; set; }

        // Guarded by the transfer's lock; while the worker performs its part, only the worker changes them.
        internal long Start { get; set; } = long.MaxValue;

        internal long End { get; set; }

        internal Exception? Error { get; set; }

        internal List<Libc.IoVector> Memory { get; } = [];

        public void Perform() => transfer.Perform(this);

        /// <summary>Marks the worker as having no part.</summary>
        internal void Leave() => (Start, End, Error) = (long.MaxValue, 0, null);
    }
}
