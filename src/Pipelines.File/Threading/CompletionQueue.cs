using System.Collections.Concurrent;
using Pipelines.File.Diagnostics;

namespace Pipelines.File.Threading;

/// <summary>
/// Runs completions of the library's threads on the application's pool. A work item runs some of them and, if there are more, queues itself
/// again behind the pool's other work before it runs the first. So an unrelated work item waits for a few completions, and not for all
/// calls that a device has ended at once.
/// </summary>
/// <param name="time">The clock; tests replace it.</param>
/// <param name="queue">Queues a turn to the application's pool.</param>
internal sealed class CompletionQueue(TimeProvider time, Action<IThreadPoolWorkItem> queue) : IThreadPoolWorkItem
{
    /// <summary>
    /// The time, microseconds, after which a turn begins no further completion. A turn that has waited long may run longer.
    /// </summary>
    private const int TurnMicroseconds = 50;

    /// <summary>
    /// A turn may run for a quarter of the time it waited, if that is longer, so that the completions get their share of a busy pool.
    /// </summary>
    private const int WaitedPart = 4;

    private readonly ConcurrentQueue<IThreadPoolWorkItem> _completions = new();

    // Interlocked: 1 while the work item is queued and has not begun. It is queued whenever completions are, so that a continuation that
    // blocks holds up none of the others.
    private int _isQueued;

    // A timestamp. Owned by the thread that has set _isQueued, until the work item clears it.
    private long _queuedAt;

    internal static CompletionQueue Shared { get; } =
        new(TimeProvider.System, static turn => ThreadPool.UnsafeQueueUserWorkItem(turn, preferLocal: false));

    /// <summary>Queues a completion, which the application's pool executes. Completions begin in the order of these calls.</summary>
    internal void Add(IThreadPoolWorkItem completion)
    {
        _completions.Enqueue(completion);
        QueueTurn();
    }

    void IThreadPoolWorkItem.Execute()
    {
        long begin = time.GetTimestamp();
        long end = begin + Math.Max(TurnMicroseconds * time.TimestampFrequency / 1_000_000, (begin - _queuedAt) / WaitedPart);
        ExecutionContext? context = ExecutionContext.Capture();
        Thread thread = Thread.CurrentThread;
        (ThreadPriority, bool, string?) properties = PropertiesOf(thread);

        // Before the first is dequeued: whoever adds a completion from now on queues another turn.
        _ = Interlocked.Exchange(ref _isQueued, 0);
        while (_completions.TryDequeue(out IThreadPoolWorkItem? completion))
        {
            if (!_completions.IsEmpty)
            {
                QueueTurn();
            }

            completion.Execute();
            if (time.GetTimestamp() >= end || PropertiesOf(thread) != properties)
            {
                // The continuation has changed the thread's priority, name or background flag. The pool resets them after each work item.
                break;
            }

            // As the pool does between two work items.
            SynchronizationContext.SetSynchronizationContext(null);
            if (context is not null)
            {
                ExecutionContext.Restore(context);
            }
        }
    }

    private static (ThreadPriority Priority, bool IsBackground, string? Name) PropertiesOf(Thread thread)
        => (thread.Priority, thread.IsBackground, thread.Name);

    private void QueueTurn()
    {
        if (Interlocked.CompareExchange(ref _isQueued, 1, 0) == 0)
        {
            _queuedAt = time.GetTimestamp();
            while (!TryQueue())
            {
                // Memory is out. Somebody waits for the completion, and no caller's code may run here.
                Thread.Sleep(1);
            }
        }
    }
    private bool TryQueue()
    {
        try
        {
            Probe.Allocating();
            queue(this);
            return true;
        }
        catch (OutOfMemoryException)
        {
            return false;
        }
    }
}
