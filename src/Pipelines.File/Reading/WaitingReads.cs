using Pipelines.File.Threading;

namespace Pipelines.File.Reading;

/// <summary>
/// What a reader needs from the first read on that has to wait: the loop that has such reads performed, and those ahead, and who waits for one of them or for the release. Many files need none.
/// </summary>
/// <param name="reader">The reader.</param>
/// <param name="buffer">Its lock, which guards the methods whose names end in Locked.</param>
internal sealed class WaitingReads(FilePipeReader reader, ReadBuffer buffer) : IValueTaskSource
{
    private readonly PendingResultPool<ReadResult> _pool = new();

    // The pending ReadAsync. Whoever takes it out, under the lock, is the one who completes it.
    private PendingResult<ReadResult>? _wait;
    private TaskCompletionSource? _release;

    // What the loop sleeps on while no read is under way. It is woken once for each sleep, by whoever has set the next read up.
    private ManualResetValueTaskSourceCore<bool> _next;
    private bool _hasLoop;

    internal bool HasWait => _wait is not null;

    /// <summary>What the pending read asks for, bytes.</summary>
    internal int MinimumSize { get; private set; }

    /// <summary>Has the reader's request performed. Called without the lock by whoever has set it up; the loop has it from here on.</summary>
    internal void Perform()
    {
        if (!_hasLoop)
        {
            _hasLoop = true;
            LibraryContext.Run(static state => _ = ((WaitingReads)state!).FillAsync(), this);
        }

        _next.SetResult(true);
    }

    internal PendingResult<ReadResult> AddLocked(int minimumSize, CancellationToken cancellationToken)
    {
        buffer.AssertLocked();
        MinimumSize = minimumSize;
        _wait = _pool.Rent();
        _wait.CancellationToken = cancellationToken;
        return _wait;
    }

    internal PendingResult<ReadResult>? TakeLocked()
    {
        buffer.AssertLocked();
        PendingResult<ReadResult>? wait = _wait;
        _wait = null;
        return wait;
    }

    /// <summary>A cancellation that comes late may meet a later wait: with the same token that one ends as well, with another it does not.</summary>
    internal PendingResult<ReadResult>? TakeLocked(CancellationToken token) => _wait?.CancellationToken == token ? TakeLocked() : null;

    /// <summary>The task of whoever waits until everything is released.</summary>
    internal Task AddReleaseLocked()
    {
        buffer.AssertLocked();
        return (_release ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task;
    }

    /// <summary>Everything is released. Told on the pool, as an awaiter's SynchronizationContext may be called.</summary>
    internal void EndReleaseLocked()
    {
        buffer.AssertLocked();
        if (_release is { } release)
        {
            ThreadPool.UnsafeQueueUserWorkItem(static release => release.TrySetResult(), release, preferLocal: false);
        }
    }

    void IValueTaskSource.GetResult(short token)
    {
        _next.GetResult(token);
        _next.Reset();
    }

    ValueTaskSourceStatus IValueTaskSource.GetStatus(short token) => _next.GetStatus(token);

    void IValueTaskSource.OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
        => _next.OnCompleted(continuation, state, token, flags);

    /// <summary>
    /// Lives as long as the reader. It goes on with each read on the thread that performed the call, and has the next one performed right there; with a caller's memory pool it goes on on a
    /// thread of the application's pool.
    /// </summary>
    private async Task FillAsync()
    {
        while (true)
        {
            await new ValueTask(this, _next.Version).WithoutBox();
            do
            {
                await reader.RunReadAsync().WithoutBox();
            }
            while (reader.EndWaitingRead());
        }
    }
}
