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
    private FileRequest? _request;

    // The memory of what is not reported yet, and the file offset where it begins.
    private readonly List<Libc.IoVector> _memory = [];
    private long _start;

    // File offsets: of the next part, and where the unbroken bytes end, with the error that ends them there, if any.
    private long _next;
    private long _end;
    private Exception? _error;

    // Something ends the request in front of where its memory does.
    private bool _isCut;

    // Workers that are queued or perform a part.
    private int _working;

    // The owner waits for the end of a run; a thread ends one, and looks whether the next one is over, too.
    private bool _isAwaited;
    private bool _isEnding;

    internal DirectTransfer(DirectFile file, int inFlight)
    {
        _file = file;
        _workers = new Worker[inFlight];
        for (int i = 0; i < inFlight; i++)
        {
            _workers[i] = new Worker(this);
        }
    }

    /// <summary>Has the request performed by waiting threads, or goes on with it and the memory that was added.</summary>
    internal void Run(FileRequest request, bool isDivided)
    {
        uint chosen;
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
            chosen = ChooseLocked(isDivided ? _workers.Length : 1);
        }

        // From the last of them on the run may have ended at any moment, and others may have been chosen.
        for (int i = 0; i < _workers.Length; i++)
        {
            if ((chosen & (1u << i)) != 0)
            {
                WaitingThreads.Shared.Queue(_workers[i]);
            }
        }

        EndRuns();
    }

    /// <summary>
    /// Nobody wants the bytes any more: what no worker has taken is not read. Some bytes always are, as none would mean the end of the file.
    /// </summary>
    internal void Stop(FileRequest request, int generation)
    {
        lock (_lock)
        {
            if (_request == request && request.Slides && request.Generation == generation && _start < _next)
            {
                _isCut |= _next < _end;
                _end = Math.Min(_next, _end);
            }
        }
    }

    private void Perform(Worker worker)
    {
        long done = 0;
        Exception? error = null;
        while (GoesOn(worker, done, error))
        {
            error = null;
            done = worker.Start;
            try
            {
                _file.Perform(CollectionsMarshal.AsSpan(worker.Memory), worker.Start, worker.End, ref done);
            }
            catch (Exception e)
            {
                // Whatever it is, a lack of memory included: nobody waits in vain.
                error = e;
            }
        }

        EndRuns();
    }

    /// <summary>
    /// Records how far the worker's part came. The worker takes the next one, unless there is none or a run is over: then it leaves.
    /// </summary>
    private bool GoesOn(Worker worker, long done, Exception? error)
    {
        lock (_lock)
        {
            if (worker.HasPart && done < worker.End && done < _end)
            {
                _end = done;
                _error = error;
                _isCut = true;
            }

            worker.HasPart = false;
            if (_next >= _end || (!_isEnding && IsRunOverLocked(out _, out _)))
            {
                worker.IsChosen = false;
                _working--;
                return false;
            }

            worker.HasPart = true;
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
    /// Ends the run if it is over. Its owner goes on within Complete, and may begin the next run. If that one is over by then, this loop ends
    /// it, and not the owner's call of <see cref="Run"/>, which would nest them.
    /// </summary>
    private void EndRuns()
    {
        bool isEnding = false;
        while (TryEndRun(ref isEnding) is { } request)
        {
            request.Complete();
        }
    }

    private FileRequest? TryEndRun(ref bool isEnding)
    {
        lock (_lock)
        {
            if (_isEnding && !isEnding)
            {
                return null;
            }

            _isEnding = isEnding = IsRunOverLocked(out int buffers, out long transferred);
            if (!isEnding)
            {
                return null;
            }

            FileRequest request = _request!;
            _isAwaited = false;
            _memory.RemoveRange(0, buffers);
            _start += transferred;
            request.IsUnderWay = _memory.Count > 0;
            if (request.IsUnderWay)
            {
                request.Finish(transferred);
                return request;
            }

            // An error behind bytes that have moved is met again by the next request.
            request.IsShortAtEnd = _error is null;
            if (_error is not null && transferred == 0)
            {
                request.Finish(FileErrors.WithPath(_error, _file.Path));
            }
            else
            {
                request.Finish(transferred);
            }

            _request = null;
            _error = null;
            return request;
        }
    }

    /// <summary>Whether the run is over: everything is, or half of what a read asks for is there, in whole pieces of memory.</summary>
    private bool IsRunOverLocked(out int buffers, out long transferred)
    {
        buffers = _memory.Count;
        transferred = _end - _start;
        if (_working == 0 && _next >= _end)
        {
            return _isAwaited;
        }

        buffers = 0;
        transferred = 0;
        if (!_isAwaited || _isCut || !_request!.Slides)
        {
            return false;
        }

        long reached = Math.Min(_next, _end);
        foreach (Worker worker in _workers)
        {
            reached = worker.HasPart ? Math.Min(reached, worker.Start) : reached;
        }

        while (buffers < _memory.Count && _start + transferred + _memory[buffers].Length <= reached)
        {
            transferred += _memory[buffers++].Length;
        }

        return transferred >= _file.BytesPerRead / 2 && buffers < _memory.Count;
    }

    /// <summary>Chooses workers for the parts that none takes yet.</summary>
    private uint ChooseLocked(int most)
    {
        uint chosen = 0;
        long parts = (_end - _file.BoundaryBefore(_next) + DirectFile.BytesPerCall - 1) / DirectFile.BytesPerCall;
        for (int i = 0; i < _workers.Length && _working < most && _next < _end && parts > BitOperations.PopCount(chosen); i++)
        {
            if (!_workers[i].IsChosen)
            {
                _workers[i].IsChosen = true;
                _working++;
                chosen |= 1u << i;
            }
        }

        return chosen;
    }

    private sealed class Worker(DirectTransfer transfer) : IWaitingCall
    {
        // A write waits for the device, as a sync does.
        public WaitKind WaitKind => transfer._file.IsWriter ? WaitKind.Sync : WaitKind.Read;

        public IWaitingCall? NextCall { get; set; }

        public long QueuedAt { get; set; }

        // What follows is guarded by the transfer's lock. The part is the worker's own while it performs it.
        internal bool IsChosen { get; set; }

        internal bool HasPart { get; set; }

        internal long Start { get; set; }

        internal long End { get; set; }

        internal List<Libc.IoVector> Memory { get; } = [];

        public void Perform() => transfer.Perform(this);
    }
}
