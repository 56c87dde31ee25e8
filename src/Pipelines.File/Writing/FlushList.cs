using System.IO.Pipelines;
using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <summary>Flushes in a row, oldest first, linked by <see cref="PendingResult{TResult}.Next"/>.</summary>
internal struct FlushList
{
    private PendingResult<FlushResult>? _last;

    internal PendingResult<FlushResult>? First { get; private set; }

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
        }
    }

    internal PendingResult<FlushResult>? TakeAll()
    {
        PendingResult<FlushResult>? all = First;
        First = _last = null;
        return all;
    }
}
