using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// The request of a <see cref="DirectFile"/> while it is performed: its memory, and the workers that take the next part each until none is
/// left. What came of it is in file order: the bytes before the first part that was short or failed.
/// </summary>
/// <remarks>
/// A write ends when the last worker has left. A read that slides (<see cref="FileRequest.Slides"/>) ends a run whenever half of what a
/// read asks for is there: its owner takes these bytes, adds memory for more, and runs it again, while the workers go on with the rest.
/// </remarks>
internal sealed class DirectTransfer
{
    private readonly DirectFile _file;
    private readonly Worker[] _workers;

    // Guards everything below.
    private readonly Lock _lock = new();
    private readonly Stack<Worker> _idle;

    // Its owner waits for the end of a run; else the workers go on with what there is.
    private FileRequest? _request;
    private bool _isAwaited;

    // The memory of what is not reported yet, and the file offset where it begins.
    private readonly List<Libc.IoVector> _memory = [];
    private long _start;

    // File offsets: of the next part, and where the unbroken bytes end, with the error that ends them there, if any.
    private long _next;
    private long _end;
    private Exception? _error;

    // Something ends the request in front of where its memory does.
    private bool _isCut;

    internal DirectTransfer(DirectFile file, int inFlight)
    {
        _file = file;
        _workers = [.. Enumerable.Range(0, inFlight).Select(_ => new Worker(this))];
        _idle = new Stack<Worker>(_workers);
    }

    /// <summary>Has the request performed by waiting threads, or goes on with it and the memory that was added.</summary>
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

            // A worker for each part that none has taken, but one in any case: the run may be over by now, and a worker ends it.
            long parts = Math.Max(1, (_end - _file.BoundaryBefore(_next) + DirectFile.BytesPerCall - 1) / DirectFile.BytesPerCall);
            for (int working = _workers.Length - _idle.Count; parts > 0 && working < (isDivided ? _workers.Length : 1); parts--, working++)
            {
                WaitingThreads.Shared.Queue(_idle.Pop());
            }
        }
    }

    /// <summary>
    /// Nobody wants the bytes any more: what no worker has taken is not read. Some bytes always are, as none would mean the end of the
    /// file.
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
                // Whatever it is, a lack of memory included: nobody waits in vain.
                worker.Error = e;
            }
        }

        // The owner goes on within this call, and may begin the next run.
        ended?.Complete();
    }

    /// <summary>
    /// Records how far the worker's part came. The worker takes the next one, unless there is none, or a run is over, which is its to end:
    /// then it leaves.
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
    /// A worker ends the run if it is over: everything is, and no other worker is left; or half of what a read asks for is there, in whole
    /// pieces of memory.
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
            // An error behind bytes that have moved is met again by the next request.
            request.Finish(transferred);
        }

        return request;
    }

    private sealed class Worker(DirectTransfer transfer) : IWaitingCall
    {
        /// <summary>How far the part has come, file offset.</summary>
        internal long Done;

        // A write waits for the device, as a sync does.
        public WaitKind WaitKind => transfer._file.IsWriter ? WaitKind.Sync : WaitKind.Read;

        public long QueuedAt { get; set; }

        // What follows is guarded by the transfer's lock. The part is the worker's own while it performs it.
        internal long Start { get; set; } = long.MaxValue;

        internal long End { get; set; }

        internal Exception? Error { get; set; }

        internal List<Libc.IoVector> Memory { get; } = [];

        public void Perform() => transfer.Perform(this);

        /// <summary>It has no part.</summary>
        internal void Leave() => (Start, End, Error) = (long.MaxValue, 0, null);
    }
}
