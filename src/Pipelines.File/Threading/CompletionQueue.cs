using System.Collections.Concurrent;

namespace Pipelines.File.Threading;

/// <summary>
/// Completions that other threads than the application's pool's have for it. They take turns with what else is queued there: as one work
/// item, which runs some of them and queues itself again behind the others' before, so that an unrelated work item waits for a few of them
/// and not for all that a device has ended at once.
/// </summary>
/// <param name="time">Other than the system's for tests.</param>
/// <param name="queue">Has the turn executed by the application's pool.</param>
internal sealed class CompletionQueue(TimeProvider time, Action<IThreadPoolWorkItem> queue) : IThreadPoolWorkItem
{
    /// <summary>How long one turn goes on with further completions, microseconds; longer where it had to wait for its turn.</summary>
    private const int TurnMicroseconds = 50;

    /// <summary>
    /// Of the time that a turn was waited for, it takes at most this part, so that the completions of a busy pool have their share.
    /// </summary>
    private const int WaitedPart = 4;

    private readonly ConcurrentQueue<IThreadPoolWorkItem> _completions = new();

    // Interlocked: 1 while the work item is queued and has not begun. There is one wherever there are completions, so that a continuation
    // which blocks holds up none of the others.
    private int _isQueued;

    // A timestamp; owned by whoever has set _isQueued, until the work item clears it.
    private long _queuedAt;

    internal static CompletionQueue Shared { get; } =
        new(TimeProvider.System, static turn => ThreadPool.UnsafeQueueUserWorkItem(turn, preferLocal: false));

    /// <summary>Has the completion executed by the application's pool. Completions begin in the order that they came in.</summary>
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

        // Before the first is taken: whatever comes from here on has another turn queued.
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
                // What a continuation has made of the thread the pool undoes, between two work items.
                break;
            }

            // As the pool does there, too.
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
            queue(this);
        }
    }
}
