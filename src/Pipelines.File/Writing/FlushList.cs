using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <summary>Flushes in a row, oldest first, linked by <see cref="PendingResult{TResult}.Next"/>.</summary>
internal struct FlushList
{
    private PendingResult<FlushResult>? _last;
    private int _count;

    internal PendingResult<FlushResult>? First { get; private set; }

    /// <summary>How many there are: by anybody, who may find a moment of a change.</summary>
    internal readonly int Count => Volatile.Read(in _count);

    /// <summary>Adds a flush and those that it is linked to.</summary>
    internal void Add(PendingResult<FlushResult>? flushes)
    {
        if (_last is null)
        {
            First = flushes;
        }
        else
        {
            _last.Next = flushes;
        }

        for (; flushes is not null; flushes = flushes.Next)
        {
            _last = flushes;
            _count++;
        }
    }

    internal PendingResult<FlushResult>? TakeAll()
    {
        PendingResult<FlushResult>? all = First;
        First = _last = null;
        _count = 0;
        return all;
    }
}
