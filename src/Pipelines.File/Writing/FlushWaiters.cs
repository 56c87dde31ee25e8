using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <summary>
/// The pending flushes of one writer, oldest first. The writer's lock guards all of it. Whoever takes flushes out, under that lock,
/// completes them afterwards without it.
/// </summary>
internal sealed class FlushWaiters
{
    private readonly List<(PendingResult<FlushResult> Flush, FlushTarget Target)> _all = [];
    private readonly Stack<PendingResult<FlushResult>> _free = new();

    /// <summary>The number of pending flushes. A racy hint, readable without the lock.</summary>
    internal int Count => _all.Count;

    /// <summary>Whether a flush waits for a sync of no more than the first <paramref name="written"/> bytes.</summary>
    internal bool WantsSync(long written)
    {
        foreach ((_, FlushTarget target) in _all)
        {
            if (target.Synced && target.Bytes <= written)
            {
                return true;
            }
        }

        return false;
    }

    internal PendingResult<FlushResult> Add(FlushTarget target, CancellationToken cancellationToken)
    {
        PendingResult<FlushResult> flush = PendingResult<FlushResult>.Rent(_free, cancellationToken);
        _all.Add((flush, target));
        return flush;
    }

    /// <summary>Moves the flushes that have reached their target to <paramref name="taken"/>.</summary>
    internal void TakeReached(long written, long synced, List<PendingResult<FlushResult>> taken)
        => Take((written, synced), static (_, target, reached) => target.IsReached(reached.written, reached.synced), taken);

    internal List<PendingResult<FlushResult>> TakeCanceled(CancellationToken token)
        => Take(token, static (flush, _, token) => flush.CancellationToken == token, []);

    internal List<PendingResult<FlushResult>> TakeAll() => Take(true, static (_, _, _) => true, []);

    /// <summary>
    /// Completes flushes that were taken out. Called on a thread of the application. If an awaiter throws instead of queueing its
    /// continuation, the others are completed all the same; then the first of these exceptions is thrown.
    /// </summary>
    internal static void CompleteNow(List<PendingResult<FlushResult>> flushes, FlushResult result, Exception? error)
    {
        ExceptionDispatchInfo? thrown = null;
        foreach (PendingResult<FlushResult> flush in flushes)
        {
            try
            {
                flush.CompleteNow(result, error);
            }
            catch (Exception e)
            {
                thrown ??= ExceptionDispatchInfo.Capture(e);
            }
        }

        thrown?.Throw();
    }

    private List<PendingResult<FlushResult>> Take<TState>(
        TState state, Func<PendingResult<FlushResult>, FlushTarget, TState, bool> isWanted, List<PendingResult<FlushResult>> taken)
    {
        int left = 0;
        for (int i = 0; i < _all.Count; i++)
        {
            if (isWanted(_all[i].Flush, _all[i].Target, state))
            {
                taken.Add(_all[i].Flush);
            }
            else
            {
                _all[left++] = _all[i];
            }
        }

        _all.RemoveRange(left, _all.Count - left);
        return taken;
    }
}
