using System.Diagnostics;

namespace Pipelines.File.Waiting;

/// <summary>The calls of one kind: those that wait for a thread, oldest first, and how many have one. <see cref="WaitingThreads"/> guards it.</summary>
internal sealed class WaitingQueue
{
    /// <summary>How often the queues are looked at while calls wait for one of few threads, milliseconds; how long one waits at the most where nothing else ends.</summary>
    internal const int LookMilliseconds = 2;

    /// <summary>How long a call may wait while others end, milliseconds: a queue that is served this fast gains nothing from more threads.</summary>
    private const int PatientMilliseconds = 5;

    private readonly int _fewest;
    private IWaitingCall? _first;
    private IWaitingCall? _last;

    private int _count;

    /// <param name="fewest">How many calls of this kind may be under way at once before more threads are of use.</param>
    /// <param name="isForFew">Whether threads are woken for it one at a time.</param>
    /// <param name="mostHelpers">How many work items of the application's pool perform its calls, at most.</param>
    internal WaitingQueue(int fewest, bool isForFew, int mostHelpers = 0)
    {
        Target = _fewest = fewest;
        IsForFew = isForFew;
        MostHelpers = mostHelpers;
    }

    internal bool IsForFew { get; }

    internal int MostHelpers { get; }

    /// <summary>Work items of the application's pool that are queued or run.</summary>
    internal int Helpers { get; set; }

    /// <summary>Those of them that perform a call.</summary>
    internal int Helping { get; set; }

    /// <summary>Calls that wait for a thread.</summary>
    internal int Count => _count;

    /// <summary>Whether there is none; may be asked without the lock, by who does not mind to be wrong just then.</summary>
    internal bool IsEmpty => Volatile.Read(ref _count) == 0;

    /// <summary>Calls that a thread performs.</summary>
    internal int UnderWay { get; set; }

    /// <summary>How many may be under way at once.</summary>
    internal int Target { get; private set; }

    /// <summary>Since when the oldest waits; only where there is one.</summary>
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
        _count++;
    }

    /// <summary>The oldest. There is one.</summary>
    internal IWaitingCall Take()
    {
        IWaitingCall call = _first!;
        _first = call.NextCall;
        call.NextCall = null;
        if (_first is null)
        {
            _last = null;
        }

        if (--_count == 0 && Target > _fewest)
        {
            // Nobody waits for a thread: they are enough.
            Target--;
        }

        return call;
    }

    /// <summary>
    /// Lets more be under way where the oldest waits for long: those that are under way wait rather than compute. With none under way it waits for the application's pool, which may compute for as long as
    /// it likes.
    /// </summary>
    /// <param name="now">A Stopwatch timestamp.</param>
    /// <param name="hasProgress">Whether any call has ended since the last look.</param>
    /// <param name="isComputing">Whether all processors have computed since then.</param>
    /// <param name="most">How many may be under way at the most.</param>
    internal void Look(long now, bool hasProgress, bool isComputing, int most)
    {
        int patience = hasProgress ? PatientMilliseconds : LookMilliseconds;
        if (_count > 0 && (!isComputing || Target == 0) && Stopwatch.GetElapsedTime(OldestQueuedAt, now).TotalMilliseconds >= patience)
        {
            Target = Math.Min(most, Target + Math.Max(1, Target / 2));
        }
    }
}
