namespace Pipelines.File.Threading;

/// <summary>The calls of one <see cref="WaitKind"/>: those that wait for a thread, oldest first, and how many have one. The lock of <see cref="WaitingThreads"/> guards it.</summary>
internal sealed class WaitingShare
{
    private IWaitingCall? _first;
    private IWaitingCall? _last;

    /// <summary>Calls that wait for a thread.</summary>
    internal int Queued { get; private set; }

    /// <summary>Calls that a thread performs.</summary>
    internal int UnderWay { get; set; }

    /// <summary>When the oldest was queued. There is one.</summary>
    internal long OldestQueuedAt => _first!.QueuedAt;

    internal void Add(IWaitingCall call)
    {
        call.NextCall = null;
        if (_last is null)
        {
            _first = call;
        }
        else
        {
            _last.NextCall = call;
        }

        _last = call;
        Queued++;
    }

    /// <summary>The oldest. There is one.</summary>
    internal IWaitingCall Take()
    {
        Debug.Assert(Queued > 0);
        IWaitingCall call = _first!;
        _first = call.NextCall;
        _last = _first is null ? null : _last;
        call.NextCall = null;
        Queued--;
        return call;
    }
}
